import type { RecordedFact } from '#domain';
import { newId } from '#platform';
import { AdminUnderTest, type Given } from './admin-under-test.testing.ts';

let admin: AdminUnderTest;
beforeAll(async () => {
  admin = await AdminUnderTest.start();
});
afterAll(() => admin.stop());

interface Asking {
  threadId: string;
  runId: string;
  requestIds: string[];
}

/** Creates a Run that waits for this many confirmations. */
async function asking(count = 1, { agentId = admin.api.agentId, input = {} } = {}): Promise<Asking> {
  const threadId = await admin.api.newThread({ text: 'hi', agentId });
  const runId = (await admin.do('getThread', { params: { threadId } })).runs[0]!.id;
  await admin.api.startRun(threadId, runId);
  const requests = Array.from({ length: count }, () => ({ requestId: newId(), toolCallId: newId() }));
  const calls = requests.map(({ toolCallId }, i) => ({
    ...{ toolCallId, toolName: 'send_note', title: 'Send a note', toolInput: { i, ...input } },
  }));
  const facts: RecordedFact[] = [
    { type: 'assistant.message_added', data: { text: '', toolCalls: calls } },
    ...calls.map((call, i): RecordedFact => {
      const { requestId } = requests[i]!;
      return { type: 'tool.confirmation_requested', data: { ...call, requestId } };
    }),
  ];
  const claim = { runId, attempt: 1 };
  await admin.api.happen(
    threadId,
    { ...claim, type: 'record', facts },
    { ...claim, type: 'wait_for_decisions', requests },
  );
  return { threadId, runId, requestIds: requests.map(({ requestId }) => requestId) };
}

const list = (query: Given<'listConfirmations'>['query'] = {}) => admin.do('listConfirmations', { query });
const answer = (threadId: string, requestId: string, decision: 'allow_once' | 'reject_once' = 'allow_once') =>
  admin.do('answerConfirmation', { params: { threadId, requestId }, body: { decision } });
const refused = (threadId: string, requestId: string) =>
  admin.refused('answerConfirmation', { params: { threadId, requestId }, body: { decision: 'allow_once' } });

test('lists waiting Runs with their requests, newest first, by Thread, Agent and organization, in pages', async () => {
  const agentId = await admin.api.newAgent();
  const { organizationId } = admin.api;
  const first = await asking(2, { agentId });
  const second = await asking(1, { agentId });
  await admin.api.newThread({ text: 'not asking', agentId });
  const { waiting, nextCursor } = await list({ agentId });
  expect(nextCursor).toBeNull();
  expect(waiting.map(({ runId }) => runId)).toEqual([second.runId, first.runId]);
  const { work } = (await admin.do('getRun', { params: { runId: first.runId } })).run;
  expect(waiting[1]).toMatchObject({
    ...{ threadId: first.threadId, threadTitle: 'hi', organizationId, organizationName: 'Acme', agentId },
    ...{ agentName: 'echo', since: work!.since, expiresAt: work!.dueAt },
  });
  expect(waiting[1]!.requests).toEqual(
    first.requestIds.map((requestId, i) => ({
      ...{ requestId, toolCallId: expect.any(String) as string, toolName: 'send_note', title: 'Send a note' },
      ...{ toolInput: { i }, destructive: false },
    })),
  );
  const ids = async (query: Given<'listConfirmations'>['query']) =>
    (await list(query)).waiting.map(({ runId }) => runId);
  expect(await ids({ threadId: first.threadId })).toEqual([first.runId]);
  expect(await ids({ organizationId, agentId })).toEqual([second.runId, first.runId]);
  expect(await ids({ organizationId: agentId })).toEqual([]);
  const page = await list({ agentId, limit: 1 });
  expect(page.waiting.map(({ runId }) => runId)).toEqual([second.runId]);
  expect(await ids({ agentId, limit: 1, cursor: page.nextCursor! })).toEqual([first.runId]);
});

test('ends a page of large requests early, and continues on the next', async () => {
  const agentId = await admin.api.newAgent();
  const large = { input: { text: 'x'.repeat(900_000) }, agentId };
  const all: string[] = [];
  for (let i = 0; i < 4; i++) all.unshift((await asking(1, large)).runId);
  const seen: string[][] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await list({ agentId, ...(cursor === undefined ? {} : { cursor }) });
    seen.push(page.waiting.map(({ runId }) => runId));
    cursor = page.nextCursor;
  }
  expect(seen).toEqual([all.slice(0, 3), all.slice(3)]);
});

test('records the operator with each decision, and continues the Run after the last one', async () => {
  const { threadId, runId, requestIds } = await asking(2);
  const [one, two] = requestIds as [string, string];
  const { run } = await answer(threadId, one, 'reject_once');
  expect(run).toMatchObject({ id: runId, status: 'waiting_input', work: { state: 'waiting' } });
  expect((await list({ threadId })).waiting[0]!.requests.map(({ requestId }) => requestId)).toEqual([two]);
  expect((await answer(threadId, two)).run).toMatchObject({ status: 'queued', work: { state: 'ready', dispatch: 2 } });
  expect((await list({ threadId })).waiting).toEqual([]);
  const { events } = await admin.do('listThreadEvents', { params: { threadId } });
  const decided = events.filter(({ type }) => type === 'tool.confirmation_decided').map(({ data }) => data);
  expect(decided).toEqual([
    expect.objectContaining({ requestId: two, decision: 'allow_once', by: admin.tokenId }),
    expect.objectContaining({ requestId: one, decision: 'reject_once', by: admin.tokenId }),
  ]);
});

test('returns a conflict for a decided request and an ended Run, and not_found for an unknown request', async () => {
  const { threadId, requestIds } = await asking(2);
  const [one, two] = requestIds as [string, string];
  await answer(threadId, one);
  expect((await refused(threadId, one))[0]).toBe('conflict');
  const other = await asking();
  expect(await refused(other.threadId, two)).toEqual(['not_found', `There is no confirmation ${two}.`]);
  await admin.do('cancelRun', { params: { runId: other.runId } });
  expect((await refused(other.threadId, other.requestIds[0]!))[0]).toBe('conflict');
  expect((await list({ threadId: other.threadId })).waiting).toEqual([]);
});

test('accepts one of five parallel decisions on the same request', async () => {
  const { threadId, requestIds } = await asking();
  const params = { threadId, requestId: requestIds[0]! };
  const sent = { params, body: { decision: 'allow_once' } };
  const all = await Promise.all(Array.from({ length: 5 }, () => admin.send('answerConfirmation', sent)));
  expect(all.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409, 409]);
});
