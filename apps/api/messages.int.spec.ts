import { randomBytes } from 'node:crypto';
import type { ListMessagesAnswer, ThreadEventLogEntry } from '#contract';
import { reduceThread, type RecordedFact } from '#domain';
import { recordStatements } from './sent-statements.testing.ts';
import { StreamsUnderTest } from './streams/streams-under-test.testing.ts';

// Real: HTTP, PostgreSQL. Commands append the events of the Runs, without a worker.

let sent: string[];
let api: StreamsUnderTest;
beforeAll(async () => {
  sent = recordStatements();
  api = await StreamsUnderTest.start({ RATE_LIMIT_STORE: 'process' });
});
afterEach(() => api.release());
afterAll(async () => {
  await api.stop();
  jest.restoreAllMocks();
});

const get = (threadId: string, path: string) =>
  fetch(`${api.url}/threads/${threadId}/${path}`, { headers: { authorization: `Bearer ${api.token}` } });

async function list(threadId: string, query = ''): Promise<ListMessagesAnswer> {
  const response = await get(threadId, `messages${query}`);
  expect(response.status).toBe(200);
  return (await response.json()) as ListMessagesAnswer;
}

/** Returns the ids of the log with decisions. */
async function logOf(threadId: string): Promise<string[]> {
  const { events } = await api.store.readLogAfter(threadId, '', { maxEvents: 1_000, withDecisions: true });
  return events.map(({ id }) => id);
}

const record = (threadId: string, runId: string, ...facts: RecordedFact[]) =>
  api.happen(threadId, { type: 'record', runId, attempt: 1, facts });
const delta = (text: string, step = 1): RecordedFact => ({ type: 'assistant.text_added', data: { text, step } });
const thought = (text: string, step = 1): RecordedFact => ({ type: 'assistant.thinking_added', data: { text, step } });
const stored = (text: string, thinking: string, step = 1): RecordedFact => ({
  type: 'assistant.message_added',
  data: { text, toolCalls: [], thinking, step },
});
const usage: RecordedFact = { type: 'usage.recorded', data: { inputTokens: 1, outputTokens: 1 } };
const CALL = { toolCallId: 'C', toolName: 'look', title: 'Look it up', toolInput: { deep: true } };
const FILE = { fileId: '01F'.padEnd(26, '0'), name: 'sum.csv', kind: 'artifact' } as const;

/** Completes a Run with two steps, a tool call and an artifact. */
async function answer(threadId: string, question: string): Promise<string> {
  const runId = await api.startRun(threadId, question);
  await record(threadId, runId, thought('Hm'), delta('I '), delta('look.'), stored('I look.', 'Hm'), usage);
  await record(threadId, runId, { type: 'tool.started', data: CALL });
  await record(
    threadId,
    runId,
    { type: 'file.changed', data: { ...FILE, action: 'created' } },
    { type: 'files.updated', data: { ...FILE, change: 'attached' } },
    {
      type: 'tool.completed',
      data: { toolCallId: 'C', toolName: 'look', outcome: 'ok', summary: 'Seen', result: 'secret', durationMs: 3 },
    },
  );
  await record(threadId, runId, delta('Done.', 2), stored('Done.', '', 2), usage);
  await api.complete(threadId, runId);
  return runId;
}

test('a message has the text, thinking, tool calls and files of all steps of its Run', async () => {
  const threadId = await api.newThread();
  const runId = await answer(threadId, 'Hello');
  const { messages, nextCursor } = await list(threadId);
  expect(nextCursor).toBeNull();
  expect(messages.map(({ role, runId: of }) => [role, of])).toEqual([
    ['user', runId],
    ['agent', runId],
  ]);
  expect(messages[0]?.parts).toEqual([{ type: 'text', text: 'Hello', state: 'done' }]);
  expect(messages[1]).toMatchObject({ id: runId, status: 'completed', error: null });
  expect(messages[1]?.parts).toEqual([
    { type: 'thinking', text: 'Hm', state: 'done', stepId: `${runId}-1-1` },
    { type: 'text', text: 'I look.', state: 'done', stepId: `${runId}-1-1` },
    { type: 'tool_call', ...CALL, state: 'completed', summary: 'Seen', durationMs: 3, approval: null },
    { type: 'file', ...FILE, action: 'created' },
    { type: 'text', text: 'Done.', state: 'done', stepId: `${runId}-1-2` },
  ]);
});

test('a decision shows in the tool call, and a stopped Run keeps its text', async () => {
  const threadId = await api.newThread();
  const runId = await api.startRun(threadId);
  const asked = { ...CALL, requestId: 'Q' };
  await record(threadId, runId, stored('', ''), usage, { type: 'tool.confirmation_requested', data: asked });
  const requests = [{ requestId: 'Q', toolCallId: 'C' }];
  await api.happen(threadId, { type: 'wait_for_decisions', runId, attempt: 1, requests });
  const callOf = async () => (await list(threadId)).messages[1]?.parts[0];
  expect(await callOf()).toMatchObject({ state: 'waiting', approval: { requestId: 'Q', state: 'pending' } });
  await api.happen(threadId, { type: 'decide_permission', requestId: 'Q', decision: 'reject_once', by: 'P' });
  expect(await callOf()).toMatchObject({ state: 'failed', approval: { requestId: 'Q', state: 'rejected' } });
  await api.happen(threadId, { type: 'claim_run', runId, dispatch: 2, holder: 'w' });
  await api.happen(threadId, { type: 'start_run', runId, attempt: 2 });
  await api.happen(threadId, { type: 'record', runId, attempt: 2, facts: [delta('So I '), delta('stop')] });
  await api.happen(threadId, { type: 'interrupt', runId, by: null });
  const [, stopped] = (await list(threadId)).messages;
  expect(stopped).toMatchObject({ status: 'cancelled' });
  expect(stopped?.parts.at(-1)).toEqual({ type: 'text', text: 'So I stop', state: 'done', stepId: `${runId}-2-1` });
});

test('pages neither skip nor repeat a message', async () => {
  const threadId = await api.newThread();
  for (let i = 0; i < 5; i++) await answer(threadId, `Question ${i}`);
  const whole = await list(threadId);
  const pages: ListMessagesAnswer[] = [];
  for (let before = ''; ;) {
    const page = await list(threadId, `?limit=2${before}`);
    pages.unshift(page);
    if (page.nextCursor === null) break;
    before = `&before=${page.nextCursor}`;
  }
  expect(pages.map(({ messages }) => messages.length)).toEqual([2, 4, 4]);
  expect(pages.flatMap(({ messages }) => messages)).toEqual(whole.messages);
  expect(await list(threadId, `?before=${'0'.repeat(26)}`)).toMatchObject({ messages: [], nextCursor: null });
});

test('a stream after lastEventId continues the messages without a gap or a repeat, at any moment', async () => {
  const threadId = await api.newThread();
  const views: { page: ListMessagesAnswer; stream: Awaited<ReturnType<typeof api.openStream>> }[] = [];
  const look = async () => {
    const page = await list(threadId);
    const stream = await api.openStream(threadId, `?extended=true&after=${page.lastEventId}`);
    views.push({ page, stream });
  };
  await look();
  await answer(threadId, 'First');
  await look();
  const runId = await api.startRun(threadId, 'Second');
  await record(threadId, runId, thought('Hm'), delta('Half'));
  await look();
  await record(threadId, runId, delta(' and half'));
  await api.happen(threadId, { type: 'hand_over_run', runId, attempt: 1, openStep: 1 });
  await look();
  await api.happen(threadId, { type: 'claim_run', runId, dispatch: 2, holder: 'w' });
  await api.happen(threadId, { type: 'start_run', runId, attempt: 2 });
  await api.happen(threadId, {
    type: 'record',
    runId,
    attempt: 2,
    facts: [delta('Whole'), stored('Whole', ''), usage],
  });
  await look();
  const asked: RecordedFact = { type: 'tool.confirmation_requested', data: { ...CALL, requestId: 'Q' } };
  await api.happen(threadId, { type: 'record', runId, attempt: 2, facts: [asked] });
  const requests = [{ requestId: 'Q', toolCallId: 'C' }];
  await api.happen(threadId, { type: 'wait_for_decisions', runId, attempt: 2, requests });
  await look();
  await api.happen(threadId, { type: 'decide_permission', requestId: 'Q', decision: 'allow_once', by: 'P' });
  await look();
  await api.happen(threadId, { type: 'interrupt', runId, by: null });
  const { messages } = await list(threadId);
  const log = await logOf(threadId);
  for (const { page, stream } of views) {
    const rest = log.filter((id) => id > page.lastEventId);
    await stream.untilHas(rest.length);
    expect(stream.ids).toEqual(rest);
    expect(reduceThread(stream.entries, page).messages).toEqual(messages);
  }
  expect(views.map(({ page }) => page.messages.length)).toEqual([0, 2, 4, 4, 4, 4, 4]);
  expect(messages[3]?.parts).toMatchObject([
    { type: 'text', text: 'Whole' },
    { type: 'tool_call', state: 'stopped', approval: { requestId: 'Q', state: 'allowed' } },
  ]);
});

test('10,000 deltas add nothing to the statements and bytes of a page', async () => {
  const threadId = await api.newThread();
  const runId = await api.startRun(threadId);
  const text = 'A few words. ';
  for (let i = 0; i < 10; i++) await record(threadId, runId, ...Array.from({ length: 1_000 }, () => delta(text)));
  await record(threadId, runId, stored(text.repeat(10_000), ''), usage);
  await api.complete(threadId, runId);
  // Not the look-ups of token and Agent, which the process caches.
  const own = () => sent.filter((statement) => ['find-thread', 'read-messages', 'read-log-after'].includes(statement));

  sent.length = 0;
  const page = await (await get(threadId, 'messages')).text();
  expect(own()).toEqual(['find-thread', 'read-messages']);
  let [after, bytes, requests] = ['0'.repeat(26), 0, 0];
  sent.length = 0;
  for (;;) {
    const window = await (await get(threadId, `events?extended=true&limit=1000&after=${after}`)).text();
    const { events, truncated } = JSON.parse(window) as { events: ThreadEventLogEntry[]; truncated: boolean };
    bytes += window.length;
    requests += 1;
    after = events.at(-1)?.id ?? after;
    if (!truncated) break;
  }
  // The text itself has 130,000 bytes.
  expect([page.length < 131_000, bytes > 3_000_000]).toEqual([true, true]);
  expect(own()).toHaveLength(2 * requests);
  process.stdout.write(
    `messages: ${page.length} bytes, 2 statements; log: ${bytes} bytes, ${own().length} statements\n`,
  );
});

test('an answer above 1 MiB is truncated to its newest texts', async () => {
  const threadId = await api.newThread();
  const runId = await api.startRun(threadId);
  // Random, because the limit first applies to compressed sizes.
  const texts = [1, 2, 3].map(() => randomBytes(525_000).toString('base64'));
  for (const [i, text] of texts.entries()) await record(threadId, runId, stored(text, '', i + 1), usage);
  await api.complete(threadId, runId);
  const { messages, nextCursor } = await list(threadId);
  expect([messages.map(({ role }) => role), nextCursor]).toEqual([['user', 'agent'], null]);
  expect(messages[1]).toMatchObject({ truncated: true, status: 'completed' });
  // The part that exceeds the limit is the last one.
  const shown = messages[1]?.parts.map((part) => ('text' in part ? texts.indexOf(part.text) : null));
  expect(shown).toEqual([1, 2]);
  expect(messages[0]).not.toHaveProperty('truncated', true);
});

test('an unknown Thread returns 404, and a wrong page 400', async () => {
  expect((await get('01J00000000000000000000000', 'messages')).status).toBe(404);
  const threadId = await api.newThread();
  for (const query of ['?limit=0', '?limit=101', '?before=x'])
    expect((await get(threadId, `messages${query}`)).status).toBe(400);
});
