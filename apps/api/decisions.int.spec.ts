import { randomBytes } from 'node:crypto';
import type { ThreadSummary } from '#contract';
import type { Command, RecordedFact } from '#domain';
import { newId } from '#platform';
import { ApiUnderTest, type Reply } from './api-under-test.testing.ts';

// Real: HTTP, PostgreSQL. Commands append the events of the Run, without a worker.

let api: ApiUnderTest;
beforeAll(async () => {
  api = await ApiUnderTest.start();
});
afterAll(() => api.stop());

type Decision = 'allow_once' | 'reject_once';
const EXTENDED = '?extended=true';
const INPUT = { type: 'user.message', content: [{ type: 'text', text: 'hi' }] };
const TOOL = { toolName: 'send_note', title: 'Send a note' };

const decision = (requestId: string, what: Decision = 'allow_once') => ({
  ...{ type: 'permission_decision', requestId, decision: what },
});
const send = (threadId: string, events: object[], query = ''): Promise<Reply> =>
  api.post(`/threads/${threadId}/events${query}`, { body: { events } });

interface Waiting {
  threadId: string;
  runId: string;
  one: string;
  two: string;
}

/** A Thread whose Run waits for two decisions. */
async function waiting(): Promise<Waiting> {
  const threadId = await api.newThread({ text: 'hi' });
  const runId = (await api.get(`/threads/${threadId}`)).json.run.id;
  await api.startRun(threadId, runId);
  const [one, two] = [newId(), newId()];
  const asked = [one, two].map((requestId, n) => ({ ...TOOL, toolCallId: `call ${n}`, toolInput: { n }, requestId }));
  const facts = asked.map((data): RecordedFact => ({ type: 'tool.confirmation_requested', data }));
  const requests = asked.map(({ requestId, toolCallId }) => ({ requestId, toolCallId }));
  const claim = { runId, attempt: 1 };
  const wait: Command[] = [
    { type: 'record', ...claim, facts },
    { type: 'wait_for_decisions', ...claim, requests },
  ];
  await api.happen(threadId, ...wait);
  return { threadId, runId, one, two };
}

/** Reads the Run by each operation that returns it. */
const readEverywhere = async ({ threadId, runId }: Waiting, query: string) => [
  (await api.get(`/threads/${threadId}${query}`)).json.run,
  (await api.get(`/threads/${threadId}/runs/${runId}${query}`)).json.run,
  (await api.get(`/threads/${threadId}/runs${query}`)).json.runs[0]!,
];

const statesOf = async ({ threadId, runId }: Waiting) =>
  (await api.get(`/threads/${threadId}/runs/${runId}${EXTENDED}`)).json.run.requests?.map(({ state }) => state);

test('every read of a Run shows its requests with extended=true only', async () => {
  const asked = await waiting();
  const plain = await readEverywhere(asked, '');
  await send(asked.threadId, [decision(asked.one)]);
  const decidedAt = (await api.get(`/threads/${asked.threadId}/events?limit=1&extended=true`)).json.events[0]!
    .occurredAt;
  const undecided = { state: 'pending', decidedAt: null, decidedBy: null };
  const requests = [
    { requestId: asked.one, toolInput: { n: 0 }, state: 'allowed', decidedAt, decidedBy: api.personId },
    { requestId: asked.two, toolInput: { n: 1 }, ...undecided },
  ].map((request, n) => ({ ...request, toolCallId: `call ${n}`, toolName: 'send_note' }));
  expect(await readEverywhere(asked, EXTENDED)).toEqual(plain.map((run) => ({ ...run, requests })));
  expect(await readEverywhere(asked, '')).toEqual(plain);
});

test('an extended list shows the requests of the newest Run of each Thread', async () => {
  const asked = await waiting();
  await send(asked.threadId, [decision(asked.one)]);
  const { json } = await api.get(`/agents/${api.agentId}/threads${EXTENDED}&runStatus=waiting_input`);
  const { threads } = json as unknown as { threads: { id: string; run: { requests: { state: string }[] } }[] };
  const { run } = threads.find(({ id }) => id === asked.threadId)!;
  expect(run.requests.map(({ state }) => state)).toEqual(['allowed', 'pending']);
});

test('each answer of a write shows the requests of its Runs', async () => {
  const asked = await waiting();
  const { json } = await send(asked.threadId, [decision(asked.two, 'reject_once')], EXTENDED);
  expect(json.events[0]!.run.requests?.map(({ state }) => state)).toEqual(['pending', 'rejected']);
  const created = await api.post(`/agents/${api.agentId}/threads${EXTENDED}`, { body: { userId: 'u', input: INPUT } });
  expect(created.json.run.requests).toEqual([]);
  await send(asked.threadId, [{ type: 'user_interrupt' }]);
  expect(await statesOf(asked)).toEqual(['withdrawn', 'rejected']);
  const retried = await api.post(`/threads/${asked.threadId}/runs/${asked.runId}/retry${EXTENDED}`);
  expect(retried.json.run.requests).toEqual([]);
  // A list has the requests of each Run.
  const { runs } = (await api.get(`/threads/${asked.threadId}/runs${EXTENDED}`)).json;
  expect(runs.map((run) => run.requests?.length)).toEqual([0, 2]);
});

test('a late decision learns which decision counts, while the Run waits, works and has ended', async () => {
  const asked = await waiting();
  const late = async () => {
    const plain = await send(asked.threadId, [decision(asked.one, 'reject_once')]);
    const extended = await send(asked.threadId, [decision(asked.one, 'reject_once')], EXTENDED);
    const message = 'The confirmation request is already decided.';
    expect([plain.status, plain.text]).toEqual([
      409,
      JSON.stringify({ error: { code: 'idempotency_conflict', message } }),
    ]);
    expect([extended.status, extended.json.error]).toEqual([409, { ...plain.json.error, decision: 'allow_once' }]);
    for (const { headers } of [plain, extended]) expect(headers.get('spool-error-reason')).toBe('request_decided');
  };
  await send(asked.threadId, [decision(asked.one)]);
  await late();
  await send(asked.threadId, [decision(asked.two)]);
  await late();
  await send(asked.threadId, [{ type: 'user_interrupt' }]);
  await late();
});

test('a decision on an unknown or a withdrawn request names no decision', async () => {
  const [asked, other] = [await waiting(), await waiting()];
  await send(other.threadId, [decision(other.one)]);
  await send(asked.threadId, [{ type: 'user_interrupt' }]);
  for (const requestId of [asked.one, other.one, 'unknown']) {
    const { status, headers, json } = await send(asked.threadId, [decision(requestId)], EXTENDED);
    expect([status, headers.get('spool-error-reason')]).toEqual([409, 'request_not_pending']);
    expect(Object.keys(json.error)).toEqual(['code', 'message']);
  }
});

test('two decisions on one request in one batch name no decision, because neither was stored', async () => {
  const asked = await waiting();
  const { headers } = await send(asked.threadId, [decision(asked.one), decision(asked.one, 'reject_once')], EXTENDED);
  expect(headers.get('spool-error-reason')).toBe('request_not_pending');
  expect(await statesOf(asked)).toEqual(['pending', 'pending']);
});

test('inputs beyond 1 MiB are omitted from the oldest requests', async () => {
  const threadId = await api.newThread({ text: 'hi' });
  const runId = (await api.get(`/threads/${threadId}`)).json.run.id;
  await api.startRun(threadId, runId);
  // Base64 of random bytes, because the database compresses other texts.
  const facts = [1, 2, 3, 4].map((n): RecordedFact => {
    const toolInput = { text: randomBytes(600_000).toString('base64') };
    return {
      type: 'tool.confirmation_requested',
      data: { ...TOOL, toolCallId: `call ${n}`, toolInput, requestId: `Q${n}` },
    };
  });
  await api.happen(threadId, { type: 'record', runId, attempt: 1, facts });
  const { run } = (await api.get(`/threads/${threadId}/runs/${runId}${EXTENDED}`)).json;
  expect(run.requests?.map(({ toolInput }) => toolInput !== undefined)).toEqual([false, false, true, true]);
});

test('a list returns the newest 2,000 requests of all its Runs', async () => {
  const agentId = await api.newAgent();
  for (let thread = 0; thread < 5; thread++) {
    const { json } = await api.post(`/agents/${agentId}/threads`, { body: { userId: 'u', input: INPUT } });
    const [threadId, runId] = [json.thread.id, json.run.id];
    await api.startRun(threadId, runId);
    const asked = Array.from({ length: 500 }, (_, n) => ({
      ...{ ...TOOL, toolCallId: `call ${n}`, toolInput: {}, requestId: newId() },
    }));
    const facts = asked.map((data): RecordedFact => ({ type: 'tool.confirmation_requested', data }));
    const requests = asked.map(({ requestId, toolCallId }) => ({ requestId, toolCallId }));
    const claim = { runId, attempt: 1 };
    await api.happen(threadId, { type: 'record', ...claim, facts }, { type: 'wait_for_decisions', ...claim, requests });
  }
  const { json } = await api.get(`/agents/${agentId}/threads${EXTENDED}`);
  const { threads } = json as unknown as { threads: ThreadSummary[] };
  expect(threads.map(({ run }) => run?.requests?.length)).toEqual([500, 500, 500, 500, 0]);
});
