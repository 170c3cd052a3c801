import { randomBytes } from 'node:crypto';
import type { RunSummary, ThreadSummary } from '#contract';
import { newId } from '#platform';
import { ApiUnderTest } from './api-under-test.testing.ts';

// Real: HTTP, PostgreSQL. Lists of Threads by the status of the newest Run, and with that Run.

let api: ApiUnderTest;
/** The Threads by the status of their newest Run; `none` has no Run. */
let threads: Record<Made, string>;

const MADE = ['none', 'queued', 'running', 'waiting_input', 'completed', 'failed', 'cancelled', 'continued'] as const;
type Made = (typeof MADE)[number];

beforeAll(async () => {
  api = await ApiUnderTest.start();
  threads = Object.fromEntries(await Promise.all(MADE.map(async (made) => [made, await make(made)]))) as typeof threads;
});

afterAll(() => api.stop());

async function make(made: Made): Promise<string> {
  if (made === 'none') return api.newThread();
  const threadId = await api.newThread({ text: 'Hello' });
  const runId = await newestRun(threadId);
  if (made === 'running') await api.startRun(threadId, runId);
  if (made === 'waiting_input') await api.ask(threadId, runId);
  if (made === 'completed') await api.completeRun(threadId, runId);
  if (made === 'cancelled') await api.happen(threadId, { type: 'interrupt', runId, by: null });
  if (made === 'failed' || made === 'continued') await fail(threadId, runId);
  if (made === 'continued') await send(threadId, 'Again');
  return threadId;
}

async function newestRun(threadId: string): Promise<string> {
  return (await api.get(`/threads/${threadId}`)).json.run.id;
}

const send = (threadId: string, text: string) =>
  api.post(`/threads/${threadId}/events`, { body: { events: [{ type: 'user_message', text }] } });

async function fail(threadId: string, runId: string): Promise<void> {
  await api.startRun(threadId, runId);
  const error = { code: 'provider_auth', message: 'The key is wrong.', retryable: false } as const;
  await api.happen(threadId, { type: 'fail_run', runId, attempt: 1, error, jitter: 0 });
}

type Page = { threads: ThreadSummary[]; nextCursor: string | null };

const readPage = async (path: string): Promise<Page> => (await api.get(path)).json as unknown as Page;

/** Reads all pages. */
async function list(query: string, path = `/agents/${api.agentId}/threads`): Promise<ThreadSummary[][]> {
  const pages: ThreadSummary[][] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const page: Page = await readPage(`${path}?${query}${cursor && `&cursor=${cursor}`}`);
    pages.push(page.threads);
    cursor = page.nextCursor;
  }
  return pages;
}

/** Returns what the Threads of the Agent were made as. Other tests have other Agents. */
const madeAs = (found: ThreadSummary[]) =>
  found
    .filter(({ agent_id }) => agent_id === api.agentId)
    .map(({ id }) => MADE.find((made) => threads[made] === id) ?? id)
    .toSorted();

const EXPECTED: [string, Made[]][] = [
  ['waiting_input,failed', ['failed', 'waiting_input']],
  ['waiting_input', ['waiting_input']],
  ['failed,failed', ['failed']],
  ['queued,booting,running', ['continued', 'queued', 'running']],
  ['completed,cancelled,expired', ['cancelled', 'completed']],
  ['failed,completed', ['completed', 'failed']],
  ['expired', []],
];

async function expectFiltered(): Promise<void> {
  for (const [runStatus, expected] of EXPECTED) {
    for (const path of ['/threads', `/agents/${api.agentId}/threads`]) {
      for (const more of ['', '&userId=u1', '&extended=true', '&limit=1', '&limit=1&extended=true']) {
        const found = await list(`runStatus=${runStatus}${more}`, path);
        expect([runStatus, path, more, madeAs(found.flat())]).toEqual([runStatus, path, more, expected]);
      }
    }
  }
}

test('lists find Threads by the status of their newest Run, page by page', expectFiltered);

test('the filter works with the other filters, and shows only own Threads', async () => {
  expect(await list('runStatus=failed&userId=other')).toEqual([[]]);
  expect(await list('runStatus=failed&status=RUNNING')).toEqual([[]]);
  expect(await list('runStatus=failed&archived=true')).toEqual([[]]);
  const { token } = await api.newPerson();
  const others = await api.get(`/agents/${api.agentId}/threads?runStatus=waiting_input,failed`, { token });
  expect(others.text).toBe('{"threads":[],"nextCursor":null}');
});

test('the newest Run counts, also behind a Run that waits for a person', async () => {
  const agentId = await api.newAgent({}, { whenBusy: 'enqueue' });
  const threadId = await api.newThread({ text: 'One', agentId });
  await api.ask(threadId, await newestRun(threadId));
  const path = `/agents/${agentId}/threads`;
  expect((await list('runStatus=waiting_input', path)).flat()).toHaveLength(1);
  await send(threadId, 'Two');
  expect((await list('runStatus=waiting_input', path)).flat()).toEqual([]);
  expect((await list('runStatus=queued', path)).flat()).toHaveLength(1);
});

test.each(['', 'waiting', 'failed,', 'failed, completed', 'FAILED'])('runStatus=%s is 400', async (runStatus) => {
  for (const path of ['/threads', `/agents/${api.agentId}/threads`]) {
    const { status, headers, json } = await api.get(`${path}?runStatus=${encodeURIComponent(runStatus)}`);
    expect([status, headers.get('spool-error-reason')]).toEqual([400, 'invalid_field']);
    expect(json.error.message).toContain('query.runStatus: must be a comma-separated list of queued, booting');
  }
});

test('extended lists have the newest Run as GET Thread does; plain lists have none', async () => {
  for (const path of ['/threads', `/agents/${api.agentId}/threads`]) {
    const plain = (await list('', path)).flat();
    const extended = (await list('extended=true', path)).flat();
    const withoutExtras = extended.map(({ run: _, externalRef: __, lastMessage: ___, ...thread }) => thread);
    expect(withoutExtras).toEqual(plain);
    for (const { id, run } of extended) expect(run).toEqual((await api.get(`/threads/${id}?extended=true`)).json.run);
    expect(extended.find(({ id }) => id === threads.none)?.run).toBeNull();
    expect(extended.find(({ id }) => id === threads.failed)?.run).toMatchObject({ status: 'failed' });
  }
  expect((await api.get(`/threads/${threads.failed}?extended=true`)).json.thread).not.toHaveProperty('run');
});

test.each([
  ['compresses well', (size: number) => 'x'.repeat(size)],
  ['does not compress', (size: number) => randomBytes(size / 2).toString('hex')],
])('a page with Runs ends after about 1 MiB of final outputs: text that %s', async (_, textOf) => {
  const agentId = await api.newAgent();
  const path = `/agents/${agentId}/threads`;
  const made: string[] = [];
  for (const size of [400_000, 400_000, 400_000, 3_000_000, 10]) {
    const threadId = await api.newThread({ text: 'Hello', agentId });
    made.unshift(threadId);
    const runId = await newestRun(threadId);
    await api.completeRun(threadId, runId);
    const finalOutput: RunSummary['finalOutput'] = { text: textOf(size), warnings: [] };
    await api.pool.query('update run_summaries set final_output = $2 where run_id = $1', [runId, finalOutput]);
  }
  const pages = await list('extended=true', path);
  expect(pages.flat().map(({ id }) => id)).toEqual(made);
  // The stored size, an estimate, may end other pages earlier. A page always has a Thread.
  expect(pages[0]).toHaveLength(2);
  for (const page of pages) {
    const sizes = page.map(({ run }) => run?.finalOutput?.text.length ?? 0);
    expect(sizes.slice(0, -1).reduce((all, size) => all + size, 0)).toBeLessThan(1024 * 1024);
  }
  expect((await list('', path)).map((page) => page.length)).toEqual([5]);
});

// Last, because it adds more failed Runs than a page looks up.
test('lists are the same with many failed Runs of others', async () => {
  await api.pool.query(
    `insert into run_summaries (run_id, thread_id, status, trigger, created_at, updated_at, completed_at, error)
     select $1 || lpad(i::text, 16, '0'), $2, 'failed', 'user_prompt', now(), now(), now(), '{"code":"x"}'
     from generate_series(1, 10001) as i`,
    [newId().slice(0, 10), newId()],
  );
  await expectFiltered();
});
