import { requestsOf, type RequestRow } from './run-requests.ts';

const AT = '2026-01-01T00:00:00.000Z';
const RUN: Pick<RequestRow, 'runId' | 'status'> = { runId: 'A', status: 'waiting_input' };
const NOTHING = { toolCallId: null, toolName: null, toolInput: null, decision: null, by: null };

const asked = (requestId: string, attempt = 1, more: Partial<RequestRow> = {}): RequestRow => ({
  ...{ ...RUN, ...NOTHING, type: 'tool.confirmation_requested', attempt, requestId, occurredAt: AT },
  ...{ toolCallId: `call of ${requestId}`, toolName: 'look', toolInput: { at: 'home' } },
  ...more,
});

const decided = (requestId: string, decision: 'allow_once' | 'reject_once' = 'allow_once'): RequestRow => ({
  ...{ ...RUN, ...NOTHING, type: 'tool.confirmation_decided', attempt: null, requestId, occurredAt: AT },
  ...{ decision, by: 'ann' },
});

const endedRun = (row: RequestRow): RequestRow => ({ ...row, status: 'cancelled' });
const statesOf = (rows: RequestRow[]) => requestsOf(rows).map(({ requestId, state }) => [requestId, state]);

test('a waiting Run shows pending, allowed and rejected requests in their order', () => {
  const rows = [asked('Q1'), asked('Q2'), asked('Q3'), decided('Q3', 'reject_once'), decided('Q1')];
  const of = (id: string) => ({
    requestId: id,
    toolCallId: `call of ${id}`,
    toolName: 'look',
    toolInput: { at: 'home' },
  });
  expect(requestsOf(rows)).toEqual([
    { ...of('Q1'), state: 'allowed', decidedAt: AT, decidedBy: 'ann' },
    { ...of('Q2'), state: 'pending', decidedAt: null, decidedBy: null },
    { ...of('Q3'), state: 'rejected', decidedAt: AT, decidedBy: 'ann' },
  ]);
});

test('an ended Run has withdrawn its undecided requests', () => {
  const rows = [asked('Q1'), asked('Q2'), decided('Q1')].map(endedRun);
  expect(statesOf(rows)).toEqual([
    ['Q1', 'allowed'],
    ['Q2', 'withdrawn'],
  ]);
});

test('a request that an earlier claim dropped is withdrawn, and is not shown if the same call asks again', () => {
  const again = asked('Q3', 2, { toolCallId: 'call of Q1' });
  expect(statesOf([asked('Q1'), asked('Q2'), again])).toEqual([
    ['Q2', 'withdrawn'],
    ['Q3', 'pending'],
  ]);
});

test('an input beyond the size of an answer is omitted', () => {
  expect(requestsOf([asked('Q1', 1, { toolInput: null })])[0]).not.toHaveProperty('toolInput');
});

test('a Run without requests has none, and malformed events are skipped', () => {
  expect(requestsOf([{ ...RUN, ...NOTHING, type: null, attempt: null, requestId: null, occurredAt: null }])).toEqual(
    [],
  );
  const withoutName = asked('Q1', 1, { toolName: null });
  const withoutDecision: RequestRow = { ...decided('Q2'), decision: null };
  expect(statesOf([withoutName, asked('Q2'), withoutDecision])).toEqual([['Q2', 'pending']]);
});
