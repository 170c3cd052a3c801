import { ApiUnderTest, someText } from './api-under-test.testing.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await ApiUnderTest.start();
});
afterAll(() => api.stop());

const UNKNOWN = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
const message = (...texts: string[]) => ({
  type: 'user.message',
  content: texts.map((text) => ({ type: 'text', text })),
});

describe('POST /agents/{agentId}/threads', () => {
  it('without input makes an idle Thread and no Run', async () => {
    const { status, json } = await api.post(`/agents/${api.agentId}/threads`, { body: { userId: 'user 1' } });
    expect(status).toBe(201);
    const { thread, run, links } = json;
    expect(thread).toEqual({
      id: someText,
      agent_id: api.agentId,
      userId: 'user 1',
      kind: 'cattle',
      source: 'api',
      status: 'IDLE',
      title: null,
      last_run_id: null,
      created_at: someText,
      updated_at: thread.created_at,
    });
    expect(run).toBeNull();
    expect(links).toEqual({ thread: `${api.url}/threads/${thread.id}` });
  });

  it('with input queues the first Run', async () => {
    const input = message('  Hello\tthere ', 'second part');
    const { json } = await api.post(`/agents/${api.agentId}/threads`, { body: { userId: 'u', input } });
    const { thread, run } = json;
    expect(run).toMatchObject({
      status: 'queued',
      trigger: 'user_prompt',
      startedAt: null,
      error: null,
      finalOutput: null,
    });
    expect(thread).toMatchObject({ status: 'RUNNING', title: 'Hello there', last_run_id: run.id });
    const { json: log } = await api.get(`/threads/${thread.id}/events`);
    expect(log.events[0]).toMatchObject({
      type: 'user.message',
      content: '  Hello\tthere \nsecond part',
      runId: run.id,
      status: 'available',
    });
  });

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

  it('takes ids in either case and answers them in upper case', async () => {
    const { status, json } = await api.post(`/agents/${api.agentId.toLowerCase()}/threads`, { body: { userId: 'u' } });
    expect(status).toBe(201);
    expect(json.thread.agent_id).toBe(api.agentId);
    const { json: found } = await api.get(`/threads/${json.thread.id.toLowerCase()}`);
    expect(found.thread).toEqual(json.thread);
    expect(found.links).toEqual(json.links);
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

describe('GET /threads/{threadId}', () => {
  it('shows the most recent Run as it is', async () => {
    const threadId = await api.newThread({ text: 'hi' });
    const { json: before } = await api.get(`/threads/${threadId}`);
    await api.completeRun(threadId, before.run.id);
    const { status, json } = await api.get(`/threads/${threadId}`);
    expect(status).toBe(200);
    expect(json.thread).toMatchObject({ status: 'IDLE', last_run_id: before.run.id });
    expect(json.run).toMatchObject({
      id: before.run.id,
      status: 'completed',
      startedAt: someText,
      completedAt: someText,
      finalOutput: { text: 'done', warnings: [] },
    });
  });

  it('answers 404 for a Thread that is not there', async () => {
    expect((await api.get(`/threads/${UNKNOWN}`)).status).toBe(404);
  });
});

describe('GET /agents/{agentId}', () => {
  it('shows what the agent is and nothing of its configuration', async () => {
    const { status, json } = await api.get(`/agents/${api.agentId.toLowerCase()}`);
    expect(status).toBe(200);
    expect(json).toEqual({
      agent: { id: api.agentId, name: 'echo', kind: 'cattle', published: true, description: 'Says it again.' },
    });
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

  it('are listed newest first, page by page', async () => {
    const newestFirst = runIds.toReversed();
    const { json: all } = await api.get(`/threads/${threadId}/runs`);
    expect(all.runs.map((run) => run.id)).toEqual(newestFirst);
    expect(all.nextCursor).toBeNull();
    const seen: unknown[] = [];
    let cursor = '';
    for (let pages = 0; pages < 3; pages++) {
      const { json } = await api.get(`/threads/${threadId}/runs?limit=2${cursor}`);
      seen.push(...json.runs.map((run) => run.id));
      expect(json.nextCursor === null).toBe(pages === 2);
      cursor = `&cursor=${json.nextCursor}`;
    }
    expect(seen).toEqual(newestFirst);
  });

  it('end exactly at a page’s end without another page', async () => {
    const { json } = await api.get(`/threads/${threadId}/runs?limit=5`);
    expect([json.runs.length, json.nextCursor]).toEqual([5, null]);
  });

  it('are empty in an empty Thread', async () => {
    const { json } = await api.get(`/threads/${await api.newThread()}/runs`);
    expect(json).toEqual({ runs: [], nextCursor: null });
  });

  it('are read one by one', async () => {
    const { status, json } = await api.get(`/threads/${threadId}/runs/${runIds[0]!.toLowerCase()}`);
    expect(status).toBe(200);
    expect(json.run).toMatchObject({ id: runIds[0], status: 'completed', finalOutput: { text: 'done' } });
  });

  it('are not found under another Thread', async () => {
    const other = await api.newThread();
    expect((await api.get(`/threads/${other}/runs/${runIds[0]}`)).status).toBe(404);
    expect((await api.get(`/threads/${threadId}/runs/${UNKNOWN}`)).status).toBe(404);
  });

  it('show startedAt as null while queued, though the Run was started before', async () => {
    const id = await api.newThread({ text: 'hi' });
    const { json } = await api.get(`/threads/${id}`);
    const runId = json.run.id;
    await api.startRun(id, runId);
    expect((await api.get(`/threads/${id}/runs/${runId}`)).json.run.startedAt).not.toBeNull();
    await api.happen(id, { type: 'hand_over_run', runId, attempt: 1 });
    const { json: queued } = await api.get(`/threads/${id}/runs/${runId}`);
    expect(queued.run).toMatchObject({ status: 'queued', startedAt: null });
    expect((await api.get(`/threads/${id}`)).json.thread.status).toBe('RESCHEDULING');
  });
});
