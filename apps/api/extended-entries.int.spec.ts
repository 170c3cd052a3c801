import type { ThreadEventLogEntry } from '#contract';
import { StreamsUnderTest } from './streams/streams-under-test.testing.ts';

// Real: HTTP, PostgreSQL. Commands append the events of the Run, without a worker.

let api: StreamsUnderTest;
beforeAll(async () => {
  api = await StreamsUnderTest.start();
});
afterEach(() => api.release());
afterAll(() => api.stop());

const CALL = { toolCallId: 'call', toolName: 'look', title: 'Look it up', toolInput: {} };
const FILE = { fileId: '01F'.padEnd(26, '0'), name: 'sum.csv', kind: 'artifact' } as const;

/** A Thread whose first worker is lost in a step. The second worker asks a person and writes a file. */
async function eventfulThread(): Promise<{ threadId: string; runId: string }> {
  const threadId = await api.newThread();
  const run = { runId: threadId, agentVersion: 1, limits: { queueMs: 1e6, workMs: 1e6, waitMs: 1e6, maxLosses: 3 } };
  const { runId } = run;
  const message = { text: 'hi', requestId: null, fileIds: [], run, by: null };
  await api.happen(threadId, { type: 'add_message', ...message, whenBusy: 'reject' });
  for (const attempt of [1, 2]) {
    const claim = { type: 'claim_run', runId, dispatch: attempt, holder: 'worker' } as const;
    await api.happen(threadId, claim, { type: 'start_run', runId, attempt });
    const text = { type: 'assistant.text_added', data: { text: `by ${attempt}`, step: 1 } } as const;
    await api.happen(threadId, { type: 'record', runId, attempt, facts: [text] });
    if (attempt === 1) await api.happen(threadId, { type: 'hand_over_run', runId, attempt, openStep: 1 });
  }
  await api.happen(threadId, {
    ...{ type: 'record', runId, attempt: 2 },
    facts: [
      { type: 'file.changed', data: { ...FILE, action: 'created' } },
      { type: 'files.updated', data: { ...FILE, change: 'attached' } },
      { type: 'tool.confirmation_requested', data: { ...CALL, requestId: 'Q' } },
    ],
  });
  await api.happen(threadId, { type: 'delete_file', ...FILE });
  return { threadId, runId };
}

type Entry = ThreadEventLogEntry;

async function list(threadId: string, query = ''): Promise<Entry[]> {
  const headers = { authorization: `Bearer ${api.token}` };
  const response = await fetch(`${api.url}/threads/${threadId}/events${query}`, { headers });
  return ((await response.json()) as { events: Entry[] }).events;
}

const PLAIN = ['id', 'type', 'occurredAt', 'runId', 'status', 'content', 'durationMs', 'tokens'];
const OF_TOOLS = ['toolCallId', 'toolName', 'toolInput'];

const besides = (entry: Entry) =>
  Object.fromEntries(Object.entries(entry).filter(([name]) => ![...PLAIN, ...OF_TOOLS].includes(name)));

test('the list has the optional fields only with extended=true', async () => {
  const { threadId, runId } = await eventfulThread();
  const plain = await list(threadId);
  expect(await list(threadId, '?extended=false')).toEqual(plain);
  expect(plain.map(besides)).toEqual(plain.map(() => ({})));

  const extended = await list(threadId, '?extended=true');
  expect(extended).toMatchObject(plain);
  const shown = extended.flatMap((entry) => {
    const more = besides(entry);
    return Object.keys(more).length > 0 ? [[entry.type, entry.content, more]] : [];
  });
  const said = (attempt: number) => ({ messageId: `${runId}-${attempt}-1`, stepId: `${runId}-${attempt}-1` });
  const { fileId, name, kind } = FILE;
  expect(shown).toEqual([
    ['user.message', 'hi', { fileIds: [] }],
    ['agent.message.delta', 'by 1', said(1)],
    ['session.status', 'RESCHEDULING', { voidedStepId: `${runId}-1-1` }],
    ['agent.message.delta', 'by 2', said(2)],
    ['file.changed', fileId, { name, kind, action: 'created' }],
    ['session_files.updated', fileId, { name, kind, action: 'attached' }],
    ['tool.confirmation.required', 'Q', { title: 'Look it up' }],
    ['session_files.updated', fileId, { name, kind, action: 'deleted' }],
  ]);
});

test('plain and extended streams of one Thread each get their own fields, past and live', async () => {
  const { threadId, runId } = await eventfulThread();
  const [plain, extended] = [await api.openStream(threadId), await api.openStream(threadId, '?extended=true')];
  const entries = await list(threadId);
  const past = entries.length;
  const newest = [plain, extended].map(({ response }) => response.headers['spool-last-event-id']);
  expect(newest).toEqual([undefined, entries.at(-1)!.id]);
  await Promise.all([plain.untilHas(past), extended.untilHas(past)]);
  const fact = { type: 'assistant.text_added', data: { text: 'live', step: 1 } } as const;
  await api.happen(threadId, { type: 'record', runId, attempt: 2, facts: [fact] });
  await Promise.all([plain.untilHas(past + 1), extended.untilHas(past + 1)]);
  const told = (text: string) =>
    text.split('\n').flatMap((line) => (line.startsWith('data: {"id"') ? [JSON.parse(line.slice(6)) as Entry] : []));
  expect(told(plain.text)).toEqual(await list(threadId));
  expect(told(extended.text)).toEqual(await list(threadId, '?extended=true'));
  expect(told(extended.text).at(-1)).toMatchObject({ content: 'live', stepId: `${runId}-2-1` });
});

/** A Thread whose Run waits for decisions on the requests Q1 and Q2. */
async function waitingThread(): Promise<string> {
  const threadId = await api.newThread();
  const runId = await api.startRun(threadId);
  const asked = ['Q1', 'Q2'].map((requestId) => ({ ...CALL, toolCallId: `call of ${requestId}`, requestId }));
  const facts = asked.map((data) => ({ type: 'tool.confirmation_requested', data }) as const);
  const requests = asked.map(({ requestId, toolCallId }) => ({ requestId, toolCallId }));
  const claim = { runId, attempt: 1 };
  await api.happen(threadId, { type: 'record', ...claim, facts }, { type: 'wait_for_decisions', ...claim, requests });
  return threadId;
}

const decide = (threadId: string, requestId: string): Promise<void> =>
  api.happen(threadId, { type: 'decide_permission', requestId, decision: 'allow_once', by: 'ann' });

test('an open extended stream and every extended read show a decision; plain ones are as without it', async () => {
  const threadId = await waitingThread();
  const text = (query: string) =>
    fetch(`${api.url}/threads/${threadId}/events${query}`, { headers: { authorization: `Bearer ${api.token}` } }).then(
      (response) => response.text(),
    );
  const [plain, extended] = [await api.openStream(threadId), await api.openStream(threadId, '?extended=true')];
  const before = [await text(''), await list(threadId)] as const;
  await decide(threadId, 'Q1');
  await extended.untilHas(before[1].length + 1);
  expect(await text('')).toBe(before[0]);

  const decided = (await list(threadId, '?extended=true')).at(-1)!;
  const { id, runId } = decided;
  expect(decided).toEqual({
    ...{ id, occurredAt: decided.occurredAt, type: 'session.status', status: 'available', content: 'decided', runId },
    ...{ durationMs: null, tokens: null, toolCallId: 'call of Q1', requestId: 'Q1', decision: 'allow_once' },
  });
  expect(extended.entries.at(-1)).toEqual(decided);
  const reloaded = await api.openStream(threadId, '?extended=true');
  await reloaded.untilHas(before[1].length + 1);
  expect(reloaded.entries).toEqual(extended.entries);

  // The next public entries reach the plain stream too.
  await decide(threadId, 'Q2');
  await api.happen(threadId, { type: 'interrupt', runId: null, by: null });
  const shown = await list(threadId);
  await plain.untilHas(shown.length);
  expect(plain.entries).toEqual(shown);
  expect(shown.filter(({ content }) => content === 'decided')).toEqual([]);
});

test('Spool-Last-Event-Id names a decision if it is the last entry, and a resumed stream continues after it', async () => {
  const threadId = await waitingThread();
  await decide(threadId, 'Q1');
  const decided = (await list(threadId, '?extended=true')).at(-1)!;
  expect(decided.content).toBe('decided');
  const stream = await api.openStream(threadId, '?extended=true');
  expect(stream.response.headers['spool-last-event-id']).toBe(decided.id);
  const resumed = await api.openStream(threadId, `?extended=true&after=${decided.id}`);
  expect(resumed.response.headers['spool-last-event-id']).toBe(decided.id);
  await decide(threadId, 'Q2');
  const more = (await list(threadId, '?extended=true')).filter(({ id }) => id > decided.id);
  await resumed.untilHas(more.length);
  expect(resumed.entries).toEqual(more);
});

test('limits count decisions in extended reads and streams only', async () => {
  const threadId = await waitingThread();
  await decide(threadId, 'Q1');
  const contents = async (query: string) => (await list(threadId, query)).map(({ content }) => content);
  expect(await contents('?limit=2')).toEqual(['Q1', 'Q2']);
  expect(await contents('?limit=2&extended=true')).toEqual(['Q2', 'decided']);
  for (const query of ['?limit=2', '?limit=2&extended=true']) {
    const stream = await api.openStream(threadId, query);
    await stream.untilHas(2);
    expect(stream.entries.map(({ content }) => content)).toEqual(await contents(query));
  }
});
