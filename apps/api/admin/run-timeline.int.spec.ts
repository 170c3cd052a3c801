import { eventually } from '#testing';
import { AdminUnderTest, type Answer } from './admin-under-test.testing.ts';
import { startWorker } from './worker-beside.testing.ts';

// Real Runs of a real worker. libs/admin/run-timeline.unit.spec.ts tests the fold with other sequences of events.

let admin: AdminUnderTest;
let worker: Awaited<ReturnType<typeof startWorker>>;
beforeAll(async () => {
  admin = await AdminUnderTest.start();
  worker = await startWorker(admin.api.databaseUrl);
});
afterAll(async () => {
  await worker.stop();
  await admin.stop();
});

const ENDED = ['completed', 'failed', 'cancelled', 'expired'];

interface Started {
  threadId: string;
  runId: string;
}

async function begin(text: string, agentId = admin.api.agentId): Promise<Started> {
  const threadId = await admin.api.newThread({ text, agentId });
  return { threadId, runId: (await admin.do('getThread', { params: { threadId } })).runs[0]!.id };
}

const timelineOf = (runId: string) => admin.do('getRunTimeline', { params: { runId } });

function until(runId: string, status: string | null = null): Promise<Answer<'getRunTimeline'>> {
  return eventually(
    async () => {
      const answer = await timelineOf(runId);
      const isThere = status === null ? ENDED.includes(answer.run.status) : answer.run.status === status;
      return isThere ? answer : false;
    },
    { what: `the Run is ${status ?? 'over'}`, timeoutMs: 20_000 },
  );
}

/** Leaves out successful boots, because one under a millisecond has no span. */
const inShort = ({ timeline }: Answer<'getRunTimeline'>) =>
  timeline.spans
    .filter(({ kind, outcome }) => kind !== 'boot' || outcome !== 'ok')
    .map(({ kind, attempt, outcome }) => [kind, attempt, outcome]);

/** Expects that each span begins where another one ends, and that together they cover the Run without a gap. */
function expectWhole({ run, timeline: { spans } }: Answer<'getRunTimeline'>): void {
  expect(spans[0]?.startedAt).toBe(run.createdAt);
  expect(
    spans
      .map(({ endedAt }) => endedAt)
      .toSorted()
      .at(-1),
  ).toBe(run.completedAt);
  const ends = new Set([run.createdAt, ...spans.map(({ endedAt }) => endedAt)]);
  for (const { startedAt, kind } of spans) expect([kind, ends.has(startedAt)]).toEqual([kind, true]);
}

test('the timeline shows a tool between two model steps, with the tokens of both and their cost', async () => {
  const prices = { input: 2, output: 10 };
  const model = { provider: 'anthropic', name: 'claude', prices } as const;
  const agentId = await admin.api.newAgent({}, { name: 'priced', model });
  const { runId } = await begin('one two three /tool', agentId);
  const answer = await until(runId);
  expect(inShort(answer)).toEqual([
    ['queue', null, 'ok'],
    ['model', 1, 'ok'],
    ['tool', 1, 'ok'],
    ['model', 1, 'ok'],
  ]);
  expectWhole(answer);
  const { spans, usage, input: _, output: __, ...rest } = answer.timeline;
  expect(rest).toEqual({ agentVersion: 1, losses: 0, cancelledBy: null, isComplete: true });
  const steps = spans.filter(({ kind }) => kind === 'model');
  expect(spans[0]!.name).toBe('Waiting for a worker');
  expect(steps.map(({ name }) => name)).toEqual(['claude', 'claude']);
  expect(spans[1]!.holder).toMatch(/\w/);
  const [, last] = steps;
  expect(last!.firstTextAt! >= last!.startedAt && last!.firstTextAt! <= last!.endedAt!).toBe(true);
  expect(usage.inputTokens).toBe(steps.reduce((sum, { inputTokens }) => sum + inputTokens!, 0));
  expect(usage.outputTokens).toBeGreaterThan(0);
  expect(usage.cost).toBeCloseTo((usage.inputTokens * 2 + usage.outputTokens * 10) / 1e6, 12);
});

test('a retry has the input of the retried Run, and run events have the inputs and results of tools', async () => {
  const { threadId, runId } = await begin('one /tool /fail');
  const failed = await until(runId);
  const input = { text: 'one /tool /fail', length: 15 };
  expect(failed.timeline).toMatchObject({ input, output: null });
  const { run } = await admin.do('retryRun', { params: { runId } });
  expect((await until(run.id)).timeline).toMatchObject({ input });
  await admin.api.post(`/threads/${threadId}/events`, {
    body: { events: [{ type: 'user_message', text: 'two /tool' }] },
  });
  const last = (await admin.do('getThread', { params: { threadId } })).runs[0]!.id;
  const { timeline } = await until(last);
  expect(timeline).toMatchObject({ input: { text: 'two /tool', length: 9 } });
  expect(timeline.output!.text).toMatch(/^You said: two\nclock \(ok\): /);

  const params = { runId: last };
  const { events, nextAfterVersion } = await admin.do('listRunEvents', { params });
  expect(nextAfterVersion).toBeNull();
  expect(events.map(({ type }) => type)).toEqual([
    'message.added',
    'run.started',
    'assistant.message_added',
    'tool.started',
    'tool.completed',
    'assistant.message_added',
    'run.completed',
  ]);
  const stored = await admin.lines('exportThread', { params: { threadId } });
  expect(events).toEqual(stored.filter(({ version }) => events.some((event) => event.version === version)));
  const tool = timeline.spans.find(({ kind }) => kind === 'tool')!;
  expect([tool.inputVersion, tool.outputVersion]).toEqual([events[3]!.version, events[4]!.version]);

  const pages: string[][] = [];
  for (let after: number | null = 0; after !== null;) {
    const page: Answer<'listRunEvents'> = await admin.do('listRunEvents', {
      params,
      query: { limit: '3', afterVersion: String(after) },
    });
    pages.push(page.events.map(({ id }) => id));
    after = page.nextAfterVersion;
  }
  expect(pages.map(({ length }) => length)).toEqual([3, 3, 1]);
  expect(pages.flat()).toEqual(events.map(({ id }) => id));
});

test('the timeline shows the wait for a confirmation by an operator', async () => {
  const { threadId, runId } = await begin('/confirm 2');
  const waiting = await until(runId, 'waiting_input');
  expect(inShort(waiting).at(-1)).toEqual(['waiting', null, null]);
  const [asked] = (await admin.do('listConfirmations', { query: { threadId } })).waiting;
  for (const { requestId } of asked!.requests) {
    const params = { threadId, requestId };
    await admin.do('answerConfirmation', { params, body: { decision: 'allow_once' } });
  }
  const answer = await until(runId);
  expect(answer.run.status).toBe('completed');
  expect(inShort(answer)).toEqual([
    ['queue', null, 'ok'],
    ['model', 1, 'ok'],
    ['waiting', null, 'ok'],
    ['queue', null, 'ok'],
    ['tool', 2, 'ok'],
    ['tool', 2, 'ok'],
    ['model', 2, 'ok'],
  ]);
  expectWhole(answer);
});

test('the timeline shows a retried failure and a final one', async () => {
  const [flaky, failing] = await Promise.all([begin('/flaky 1'), begin('/fail')]);
  const retried = await until(flaky.runId);
  expect(inShort(retried)).toEqual([
    ['queue', null, 'ok'],
    ['model', 1, 'error'],
    ['delay', null, 'ok'],
    ['queue', null, 'ok'],
    ['model', 2, 'ok'],
  ]);
  expectWhole(retried);
  expect(inShort(await until(failing.runId)).at(-1)).toEqual(['model', 1, 'error']);
});

test('the timelines of a cancelled Run and of its retry are separate', async () => {
  const { threadId, runId } = await begin('/pause 50 /pieces 1000');
  await until(runId, 'running');
  await admin.do('cancelRun', { params: { runId } });
  const cancelled = await timelineOf(runId);
  expect(inShort(cancelled)).toEqual([
    ['queue', null, 'ok'],
    ['model', 1, 'cut'],
  ]);
  expectWhole(cancelled);
  expect(cancelled.timeline.cancelledBy).toMatchObject({ kind: 'operator', name: 'Grace' });
  const { run } = await admin.do('retryRun', { params: { runId } });
  expect(run.threadId).toBe(threadId);
  await until(run.id, 'running');
  // The retry has only its own events, and the cancelled Run keeps its timeline.
  expect(inShort(await timelineOf(run.id))).toEqual([
    ['queue', null, 'ok'],
    ['model', 1, null],
  ]);
  expect((await timelineOf(runId)).timeline).toEqual(cancelled.timeline);
  await admin.api.post(`/threads/${threadId}/events`, { body: { events: [{ type: 'user_interrupt' }] } });
  expect((await timelineOf(run.id)).timeline.cancelledBy).toMatchObject({ kind: 'person' });
});

const toolResult = (result: string) => ({ toolCallId: 'a', toolName: 'a', outcome: 'ok', result, durationMs: 1 });

/** Appends `count` events with the same data to the Thread, for the Run of its last event. */
const addEvents = (threadId: string, type: string, data: object, count: number) =>
  admin.pool.query(
    `with added as (
       insert into events (thread_id, version, id, type, schema_version, data, run_id, attempt, public, occurred_at)
       select thread_id, version + i, id || i, $2, 1, $3, run_id, 1, false, occurred_at
       from (select * from events where thread_id = $1 order by version desc limit 1) last, generate_series(1, $4) i
     )
     update streams set version = version + $4 where thread_id = $1`,
    [threadId, type, JSON.stringify(data), count],
  );

test('a long input and output are cut but keep their length, and pages of large results have about 2 MB', async () => {
  const text = 'x'.repeat(21_000);
  const { threadId, runId } = await begin(text);
  const { timeline } = await until(runId);
  expect(timeline.input).toEqual({ text: text.slice(0, 20_000), length: 21_000 });
  const said = `You said: ${text}`;
  expect(timeline.output).toEqual({ text: said.slice(0, 20_000), length: said.length });

  // PostgreSQL stores this text compressed, so its stored size says little.
  const result = 'y'.repeat(1_000_000);
  await addEvents(threadId, 'tool.completed', toolResult(result), 5);
  const pages: number[] = [];
  for (let after: number | null = 0; after !== null;) {
    const query = { afterVersion: String(after) };
    const page: Answer<'listRunEvents'> = await admin.do('listRunEvents', { params: { runId }, query });
    pages.push(page.events.filter(({ type }) => type === 'tool.completed').length);
    after = page.nextAfterVersion;
  }
  expect(pages).toEqual([3, 2]);
});

test('the timeline of a Run with too many events is incomplete, and deltas do not count', async () => {
  const { threadId, runId } = await begin('hi');
  await until(runId);
  const before = await timelineOf(runId);
  await addEvents(threadId, 'assistant.text_added', { text: 'x' }, 20_000);
  const { timeline } = await timelineOf(runId);
  expect(timeline).toEqual(before.timeline);
  await addEvents(threadId, 'tool.completed', toolResult('x'), 10_000);
  const cut = await timelineOf(runId);
  expect(cut.timeline.isComplete).toBe(false);
  expect(cut.timeline.spans.length).toBeGreaterThan(9_000);
});
