import { ApiUnderTest } from './api-under-test.testing.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await ApiUnderTest.start();
});
afterAll(() => api.stop());

const UNKNOWN = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
describe('POST /agents/{agentId}/threads', () => {
  it('gives the Run the limits of the agent’s live version', async () => {
    const agentId = await api.newAgent({}, { kind: 'pet', limits: { queueMs: 5_000, workMs: 7_000 } });
    const threadId = await api.newThread({ text: 'hi', agentId });
    const { rows } = await api.pool.query<{ state: { runs: object[] } }>(
      'select state from streams where thread_id = $1',
      [threadId],
    );
    expect(rows[0]?.state.runs).toMatchObject([
      { agentVersion: 1, limits: { queueMs: 5_000, workMs: 7_000, maxLosses: 3 } },
    ]);
    expect((await api.get(`/threads/${threadId}`)).json.thread).toMatchObject({ kind: 'pet' });
  });

  it('refuses a resource, naming it: no such draft exists', async () => {
    const before = await api.rowCounts();
    const resources = [{ type: 'file', file_id: UNKNOWN.toLowerCase() }];
    const { status, json } = await api.post(`/agents/${api.agentId}/threads`, { body: { userId: 'u', resources } });
    expect([status, json.error.code]).toEqual([400, 'invalid_request']);
    expect(json.error.message).toContain(UNKNOWN);
    expect(await api.rowCounts()).toEqual(before);
  });

  it('keeps every character of what is sent', async () => {
    const text = '😀 \u2028 "quoted" \\ \u0001 \u{10FFFF} é';
    const threadId = await api.newThread({ text });
    const { json } = await api.get(`/threads/${threadId}/events`);
    expect(json.events[0]!.content).toBe(text);
  });
});

describe('Runs', () => {
  let threadId: string;
  /** Oldest first; the last one is queued, the others ended. */
  const runIds: string[] = [];

  beforeAll(async () => {
    threadId = await api.newThread();
    for (let i = 0; i < 5; i++) {
      const { json } = await api.post(`/threads/${threadId}/events`, {
        body: { events: [{ type: 'user_message', text: `m${i}` }] },
      });
      const runId = json.events[0]!.run.id;
      runIds.push(runId);
      if (i < 4) await api.completeRun(threadId, runId);
    }
  });

  it('end exactly at a page’s end without another page', async () => {
    const { json } = await api.get(`/threads/${threadId}/runs?limit=5`);
    expect([json.runs.length, json.nextCursor]).toEqual([5, null]);
  });
});
