import type { ThreadSummary } from '#contract';
import type { RecordedFact } from '#domain';
import { ApiUnderTest } from './api-under-test.testing.ts';

// Real: HTTP, PostgreSQL.

let api: ApiUnderTest;

beforeAll(async () => {
  api = await ApiUnderTest.start();
});

afterAll(() => api.stop());

const input = { type: 'user.message', content: [{ type: 'text', text: 'Hello,\n you' }] };
const EXTENDED = '?extended=true';

const create = (fields: object, query = '', key?: string) =>
  api.post(`/agents/${api.agentId}/threads${query}`, {
    body: { userId: 'u', ...fields },
    headers: key === undefined ? {} : { 'idempotency-key': key },
  });

/** Claims the Run of the Thread and records the facts of its worker. */
async function work(threadId: string, runId: string, facts: RecordedFact[]): Promise<void> {
  const claim = { runId, attempt: 1 };
  await api.handler.handle({
    threadId,
    commands: [
      { type: 'claim_run', runId, dispatch: 1, holder: 'worker' },
      { type: 'start_run', ...claim },
      { type: 'record', ...claim, facts },
    ],
  });
}

const said = (text: string): RecordedFact => ({ type: 'assistant.message_added', data: { text, toolCalls: [] } });
const withoutExtras = ({ externalRef: _, lastMessage: __, ...plain }: ThreadSummary) => plain;
/** Only lists have the Run of a Thread (run-status-lists.int.spec.ts). */
const withoutRun = ({ run: _, ...thread }: ThreadSummary) => thread;

async function readEverywhere(id: string, query: string): Promise<ThreadSummary[]> {
  const lists = [`/threads${query}`, `/agents/${api.agentId}/threads${query}`];
  const listed = await Promise.all(
    lists.map(async (path) => {
      const { threads } = (await api.get(path)).json as unknown as { threads: ThreadSummary[] };
      return threads.find((thread) => thread.id === id)!;
    }),
  );
  return [(await api.get(`/threads/${id}${query}`)).json.thread, ...listed];
}

test('every read of a Thread has its reference and last message with extended=true only', async () => {
  const { id } = (await create({ externalRef: 'order 1', input })).json.thread;
  const plain = await readEverywhere(id, '');
  const extended = await readEverywhere(id, EXTENDED);
  const { created_at: createdAt } = plain[0]!;
  const extras = { externalRef: 'order 1', lastMessage: { role: 'user', text: 'Hello, you', createdAt } };
  expect(extended.map(withoutRun)).toEqual(plain.map((thread) => ({ ...thread, ...extras })));
  for (const thread of plain) expect(Object.keys(thread)).not.toEqual(expect.arrayContaining(['externalRef']));
  for (const thread of plain) expect(Object.keys(thread)).not.toEqual(expect.arrayContaining(['lastMessage']));
  expect((await api.get(`/threads/${id}?extended=false`)).text).toBe((await api.get(`/threads/${id}`)).text);
});

test('a Thread without reference and message has null for both', async () => {
  const { id } = (await create({})).json.thread;
  for (const thread of await readEverywhere(id, EXTENDED)) {
    expect(thread).toMatchObject({ externalRef: null, lastMessage: null });
  }
});

test('the last message is the last stored one, not text of a running step or a step without text', async () => {
  const { thread, run } = (await create({ input })).json;
  const lastMessage = async () => (await readEverywhere(thread.id, EXTENDED)).map((one) => one.lastMessage?.text);
  await work(thread.id, run.id, [
    said('See \uE200cite\uE202turn0\uE201this.'),
    said(''),
    { type: 'assistant.text_added', data: { text: 'half of some' } },
  ]);
  expect(await lastMessage()).toEqual(['See this.', 'See this.', 'See this.']);
  const { lastMessage: shown } = (await api.get(`/threads/${thread.id}${EXTENDED}`)).json.thread;
  expect(shown).toMatchObject({ role: 'agent' });
});

test('a long message is cut to 200 whole characters', async () => {
  const text = '😀'.repeat(5_000);
  const { id } = (await create({ input: { type: 'user.message', content: [{ type: 'text', text }] } })).json.thread;
  const { lastMessage } = (await api.get(`/threads/${id}${EXTENDED}`)).json.thread;
  expect(lastMessage?.text).toBe(`${'😀'.repeat(199)}…`);
});

test('writes return the optional fields, fresh or replayed; the stored answer stays plain', async () => {
  const fresh = await create({ externalRef: 'order 2', input }, EXTENDED, 'key 1');
  const { thread } = fresh.json;
  expect(thread).toMatchObject({ externalRef: 'order 2', lastMessage: { text: 'Hello, you' } });
  const plain = await create({ externalRef: 'order 2', input }, '', 'key 1');
  const { requests, ...plainRun } = fresh.json.run;
  expect([requests, plain.json]).toEqual([[], { ...fresh.json, thread: withoutExtras(thread), run: plainRun }]);
  const { rows } = await api.pool.query<{ body: string }>(`select body from idempotency_keys where key = 'key 1'`);
  expect(rows).toEqual([{ body: plain.text }]);
  await work(thread.id, fresh.json.run.id, [said('Done.')]);
  const replayed = await create({ externalRef: 'order 2', input }, EXTENDED, 'key 1');
  expect(replayed.headers.get('idempotency-replayed')).toBe('true');
  // The optional fields have their current values; the rest is the stored answer.
  expect(replayed.json.thread.lastMessage).toMatchObject({ role: 'agent', text: 'Done.' });
  const { requests: requestsNow, ...replayedRun } = replayed.json.run;
  const replayedPlain = { ...replayed.json, thread: withoutExtras(replayed.json.thread), run: replayedRun };
  expect([requestsNow, replayedPlain]).toEqual([[], plain.json]);
  expect((await create({ externalRef: 'order 2', input }, '', 'key 1')).text).toBe(plain.text);
});

test('setting a title and sending events return the optional fields', async () => {
  const { id } = (await create({ externalRef: 'order 3' })).json.thread;
  const titled = await api.call('PATCH', `/threads/${id}${EXTENDED}`, { body: { title: 'Mine' } });
  expect(titled.json.thread).toMatchObject({ title: 'Mine', externalRef: 'order 3', lastMessage: null });
  const body = { events: [{ type: 'user_message', text: 'And now?' }] };
  const sent = await api.post(`/threads/${id}/events${EXTENDED}`, { body });
  expect(sent.json.thread).toMatchObject({ externalRef: 'order 3', lastMessage: { role: 'user', text: 'And now?' } });
});
