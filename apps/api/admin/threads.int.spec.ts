import { LIVE_BUS } from '#live';
import { eventually } from '#testing';
import { AdminHttpModule } from './admin-http.module.ts';
import { AdminUnderTest, type Answer, type Given, type OpenLines } from './admin-under-test.testing.ts';

let admin: AdminUnderTest;
let organizationId: string;
let personId: string;
let agentId: string;
beforeAll(async () => {
  admin = await AdminUnderTest.start();
  ({ organizationId, personId, agentId } = admin.api);
});
afterAll(() => admin.stop());

interface Started {
  threadId: string;
  runId: string;
}

async function started(text = 'hi'): Promise<Started> {
  const threadId = await admin.api.newThread({ text });
  const runId = (await admin.do('getThread', { params: { threadId } })).runs[0]!.id;
  await admin.api.startRun(threadId, runId);
  return { threadId, runId };
}

async function write({ threadId, runId }: Started, ...texts: string[]): Promise<void> {
  const facts = texts.map((text) => ({ type: 'assistant.text_added', data: { text } }) as const);
  await admin.api.happen(threadId, { type: 'record', runId, attempt: 1, facts });
}

async function complete({ threadId, runId }: Started): Promise<void> {
  await admin.api.happen(threadId, {
    type: 'complete_run',
    runId,
    attempt: 1,
    finalOutput: { text: 'x', warnings: [] },
  });
}

describe('the admin lists', () => {
  test('list Threads by each filter, in pages', async () => {
    const other = await admin.api.newAgent();
    const { personId: bobId, token } = await admin.api.newPerson();
    const bot = { kind: 'service', organizationId, agentIds: [other], name: 'bot' } as const;
    const service = await admin.do('mintToken', { body: bot });
    const mine = await admin.api.newThread({ agentId: other });
    const bobs = await admin.api.newThread({ agentId: other, token });
    const bots = await admin.api.newThread({ agentId: other, token: service.secret, text: 'hi' });
    await admin.api.happen(mine, { type: 'archive' });
    await admin.do('terminateThread', { params: { threadId: bobs } });
    const ids = async (query: Given<'listThreads'>['query']) =>
      (await admin.do('listThreads', { query: query! })).threads.map(({ id }) => id);
    expect(await ids({ agentId: other })).toEqual([bots, bobs, mine]);
    expect(await ids({ agentId: other, ownerPersonId: personId })).toEqual([mine]);
    expect(await ids({ ownerPersonId: bobId })).toEqual([bobs]);
    expect(await ids({ ownerTokenId: service.token.id })).toEqual([bots]);
    expect(await ids({ agentId: other, userId: 'u1' })).toEqual([bots, bobs, mine]);
    expect(await ids({ agentId: other, userId: 'u2' })).toEqual([]);
    expect(await ids({ agentId: other, status: 'TERMINATED' })).toEqual([bobs]);
    expect(await ids({ agentId: other, status: 'RUNNING' })).toEqual([bots]);
    expect(await ids({ agentId: other, archived: 'true' })).toEqual([mine]);
    expect(await ids({ agentId: other, archived: 'false' })).toEqual([bots, bobs]);
    expect(await ids({ organizationId: agentId })).toEqual([]);
    expect(await ids({ organizationId, limit: 1 })).toEqual([bots]);
    const { threads, nextCursor } = await admin.do('listThreads', { query: { agentId: other, limit: 2 } });
    expect(threads.map(({ id }) => id)).toEqual([bots, bobs]);
    const last = await admin.do('listThreads', { query: { agentId: other, limit: 2, cursor: nextCursor! } });
    expect([last.threads.map(({ id }) => id), last.nextCursor]).toEqual([[mine], null]);
  });

  test('find Threads by their reference, with externalRef and search', async () => {
    const created = (fields: object) =>
      admin.api.post(`/agents/${agentId}/threads`, { body: { userId: 'u1', ...fields } });
    const [named, other] = [await created({ externalRef: 'order 1042' }), await created({})];
    const ids = [named.json.thread.id, other.json.thread.id];
    const set = 'update thread_summaries set client_external_ref = $1 where thread_id = $2';
    await admin.pool.query(set, ['order 1042', ids[1]]);
    const all = { ids: ids.toReversed(), refs: ['order 1042', 'order 1042'] };
    for (const query of [{ externalRef: 'order 1042' }, { search: 'order 1042' }]) {
      const { threads } = await admin.do('listThreads', { query });
      expect({ ids: threads.map(({ id }) => id), refs: threads.map(({ externalRef }) => externalRef) }).toEqual(all);
    }
    const narrowed = { externalRef: 'order 1042', search: ids[0]!, agentId };
    expect((await admin.do('listThreads', { query: narrowed })).threads.map(({ id }) => id)).toEqual([ids[0]]);
    expect((await admin.do('listThreads', { query: { externalRef: 'order' } })).threads).toEqual([]);
    const { thread } = await admin.do('getThread', { params: { threadId: ids[0]! } });
    expect(thread.externalRef).toBe('order 1042');
  });

  test('list all Runs of a Thread, and only live Runs otherwise', async () => {
    const other = await admin.api.newAgent();
    const threadId = await admin.api.newThread({ agentId: other, text: 'one' });
    const [first] = (await admin.do('listRuns', { query: { threadId } })).runs;
    expect(first).toMatchObject({ status: 'queued', work: { state: 'ready', dispatch: 1, attempt: 0, holder: null } });
    await admin.api.completeRun(threadId, first!.id);
    const message = { type: 'user_message', text: 'two' };
    const sent = await admin.api.post(`/threads/${threadId}/events`, { body: { events: [message] } });
    expect([sent.status, sent.text]).toEqual([200, sent.text]);
    const runs = (await admin.do('listRuns', { query: { threadId } })).runs;
    const second = runs[0]!.id;
    expect(runs.map(({ id, status }) => [id, status])).toEqual([
      [second, 'queued'],
      [first!.id, 'completed'],
    ]);
    await admin.api.startRun(threadId, second);
    const ids = async (query: Given<'listRuns'>['query']) =>
      (await admin.do('listRuns', { query: query! })).runs.map(({ id }) => id);
    expect(await ids({ agentId: other })).toEqual([second]);
    expect(await ids({ agentId: other, status: 'running' })).toEqual([second]);
    expect(await ids({ agentId: other, status: 'queued' })).toEqual([]);
    expect(await ids({ organizationId: other })).toEqual([]);
    expect(await ids({ threadId, status: 'completed' })).toEqual([first!.id]);
    const { nextCursor } = await admin.do('listRuns', { query: { threadId, limit: 1 } });
    expect(await ids({ threadId, limit: 1, cursor: nextCursor! })).toEqual([first!.id]);
    expect((await admin.do('getRun', { params: { runId: second } })).run).toMatchObject({
      status: 'running',
      agentId: other,
      organizationId,
      work: { state: 'leased', attempt: 1, holder: 'test' },
    });
  });
});

describe('the admin API finds', () => {
  const found = async (query: Given<'listThreads'>['query']) =>
    (await admin.do('listThreads', { query: query! })).threads.map(({ id }) => id);
  const runsOf = async (query: Given<'listRuns'>['query']) =>
    (await admin.do('listRuns', { query: query! })).runs.map(({ id }) => id);

  test('Threads by id, by a Run’s id, by user and by a part of the title', async () => {
    const one = await started('An ÄPFEL 100%_sure question');
    const two = await started('Another 100 percent sure question');
    const { rows } = await admin.pool.query<{ user_id: string }>(
      `update thread_summaries set user_id = 'somebody special' where thread_id = $1 returning user_id`,
      [two.threadId],
    );
    expect(await found({ search: one.threadId.toLowerCase() })).toEqual([one.threadId]);
    expect(await found({ search: one.runId.toLowerCase() })).toEqual([one.threadId]);
    expect(await found({ search: rows[0]!.user_id })).toEqual([two.threadId]);
    expect(await found({ search: rows[0]!.user_id.slice(1) })).toEqual([]);
    expect(await found({ search: 'äpfel 100%_' })).toEqual([one.threadId]);
    expect(await found({ search: '100_' })).toEqual([]);
    expect(await found({ search: '0%p' })).toEqual([]);
    expect(await found({ search: 'SURE QUEST' })).toEqual([two.threadId, one.threadId]);
    expect(await found({ search: 'sure quest', status: 'RUNNING', limit: 1 })).toEqual([two.threadId]);
    expect(await found({ search: 'sure quest', cursor: two.threadId })).toEqual([one.threadId]);
    expect(await found({ search: 'sure quest', userId: 'somebody special' })).toEqual([two.threadId]);
    expect(await found({ search: 'sure quest', agentId: one.runId })).toEqual([]);
    expect(await found({ search: one.threadId, archived: 'true' })).toEqual([]);
  });

  test('ended Runs with scope=all, by Agent, status, error and time', async () => {
    const other = await admin.api.newAgent();
    const threadId = await admin.api.newThread({ agentId: other, text: 'one' });
    const runId = (await admin.do('getThread', { params: { threadId } })).runs[0]!.id;
    await admin.api.startRun(threadId, runId);
    expect(await runsOf({ agentId: other })).toEqual([runId]);
    const error = { code: 'provider_auth', message: 'No.', retryable: false } as const;
    await admin.api.happen(threadId, { type: 'fail_run', runId, attempt: 1, error, jitter: 0 });
    const live = await admin.api.newThread({ agentId: other, text: 'two' });
    const liveId = (await admin.do('getThread', { params: { threadId: live } })).runs[0]!.id;
    expect(await runsOf({ agentId: other })).toEqual([liveId]);
    expect(await runsOf({ agentId: other, scope: 'all' })).toEqual([liveId, runId]);
    expect(await runsOf({ agentId: other, scope: 'all', limit: 1, cursor: liveId })).toEqual([runId]);
    expect(await runsOf({ agentId: other, scope: 'all', status: 'failed' })).toEqual([runId]);
    expect(await runsOf({ agentId: other, scope: 'all', organizationId })).toEqual([liveId, runId]);
    expect(await runsOf({ scope: 'all', organizationId: other })).toEqual([]);
    expect(await runsOf({ scope: 'all', errorCode: 'provider_auth' })).toEqual([runId]);
    expect(await runsOf({ errorCode: 'provider_auth' })).toEqual([]);
    expect(await runsOf({ scope: 'all', errorCode: 'provider' })).toEqual([]);
    const { userId } = (await admin.do('getThread', { params: { threadId } })).thread;
    expect(await runsOf({ scope: 'all', agentId: other, userId })).toEqual([liveId, runId]);
    expect(await runsOf({ scope: 'all', agentId: other, userId: `${userId}x` })).toEqual([]);
    // Callers can retry only what may succeed without a change. Operators have removed the cause.
    expect((await admin.do('getRun', { params: { runId } })).run.mayBeRetried).toBe(true);
    expect((await admin.api.post(`/threads/${threadId}/runs/${runId}/retry`)).status).toBe(409);
    const { createdAt } = (await admin.do('getRun', { params: { runId: liveId } })).run;
    expect(await runsOf({ agentId: other, scope: 'all', since: createdAt })).toEqual([liveId]);
    expect(await runsOf({ agentId: other, since: createdAt, status: 'queued' })).toEqual([liveId]);
    const later = new Date(Date.parse(createdAt) + 1).toISOString();
    expect(await runsOf({ agentId: other, scope: 'all', since: later })).toEqual([]);
    const retried = await admin.do('retryRun', { params: { runId } });
    expect(retried.run).toMatchObject({ threadId, status: 'queued', trigger: 'retry' });
    await admin.do('cancelRun', { params: { runId: retried.run.id } });
  });
});

describe('the export of a Thread', () => {
  test('is the whole stored stream, over many pages', async () => {
    const run = await started();
    for (let i = 0; i < 4; i++) await write(run, ...Array.from({ length: 60 }, (_, j) => `${i} ${j} ü\n`));
    const { threadId } = run;
    const lines = await admin.lines('exportThread', { params: { threadId } });
    const { rows } = await admin.pool.query<Answer<'exportThread'>>(
      `select thread_id as "threadId", version, id, type, schema_version as "schemaVersion", data, run_id as "runId",
              attempt, public, occurred_at as "occurredAt"
       from events where thread_id = $1 order by version`,
      [threadId],
    );
    expect(lines.length).toBeGreaterThan(240);
    expect(lines).toEqual(rows);
    expect((await admin.do('getThread', { params: { threadId } })).events).toBe(rows.length);
  });

  test('ends with an error line if the Thread is deleted meanwhile', async () => {
    const run = await started();
    // More than the buffers of the connection hold.
    for (let i = 0; i < 8; i++) await write(run, ...Array.from({ length: 50 }, () => 'x'.repeat(60_000)));
    const [url, init] = admin.request('exportThread', { params: { threadId: run.threadId } });
    const response = await fetch(url, init);
    await admin.do('deleteThread', { params: { threadId: run.threadId } });
    const lines = (await response.text()).trimEnd().split('\n');
    const last: unknown = JSON.parse(lines.at(-1)!);
    expect(last).toEqual({
      error: { code: 'not_found', message: `There is no Thread ${run.threadId}.` },
    });
  });
});

describe('the tail of a Thread', () => {
  const listeners = () => admin.api.app.get<{ listeners: Set<unknown> }>(LIVE_BUS).listeners.size;
  const openAnswers = () => admin.api.app.get(AdminHttpModule).open.size;
  let before: number;
  beforeEach(() => (before = listeners()));
  afterEach(() =>
    eventually(() => listeners() === before && openAnswers() === 0, { what: 'all answers are released' }),
  );

  const texts = ({ lines }: OpenLines) =>
    lines.filter(({ type }) => type === 'agent.message.delta').map(({ content }) => content);
  const open = (threadId: string, query: Record<string, unknown> = {}) =>
    admin.open('tailThread', { params: { threadId }, query });

  test('follows the Thread, and ends when it is deleted', async () => {
    const run = await started();
    const tail = await open(run.threadId);
    await tail.until('past entries are there', (lines) => lines.some(({ type }) => type === 'run.started'));
    for (const text of ['a', 'b']) {
      await write(run, text);
      await tail.until(`${text} arrives`, () => texts(tail).at(-1) === text);
    }
    expect(tail.response.headers.get('x-accel-buffering')).toBe('no');
    await admin.do('deleteThread', { params: { threadId: run.threadId } });
    expect(await tail.ended()).toBe('whole');
    expect(tail.lines.at(-1)).not.toHaveProperty('error');
  });

  test('with until=idle starts 20 entries back, and ends once no Run is active', async () => {
    const run = await started();
    for (let i = 0; i < 250; i += 50) await write(run, ...Array.from({ length: 50 }, (_, j) => `${i + j}`));
    const tail = await open(run.threadId, { until: 'idle' });
    await tail.until('the last past entry is there', () => texts(tail).at(-1) === '249');
    expect(texts(tail).length).toBeLessThanOrEqual(20);
    await write(run, 'last');
    await complete(run);
    expect(await tail.ended()).toBe('whole');
    expect(tail.lines.at(-1)).not.toHaveProperty('error');
    expect(texts(tail).at(-1)).toBe('last');
    expect(tail.lines.filter(({ type }) => type === 'run.completed')).toHaveLength(1);
    // From before the first entry, it delivers all entries, which are more than a page.
    const whole = await admin.lines('tailThread', {
      params: { threadId: run.threadId },
      query: { until: 'idle', after: '00000000000000000000000000' },
    });
    expect(whole.filter(({ type }) => type === 'agent.message.delta').map(({ content }) => content)).toEqual([
      ...Array.from({ length: 250 }, (_, i) => `${i}`),
      'last',
    ]);
    const { id } = whole[100]!;
    const rest = await admin.lines('tailThread', {
      params: { threadId: run.threadId },
      query: { until: 'idle', after: id },
    });
    expect(rest).toEqual(whole.slice(101));
  });

  test('is released when its client disconnects', async () => {
    const run = await started();
    const tails = await Promise.all([1, 2, 3].map(() => open(run.threadId)));
    await Promise.all(tails.map((tail) => tail.until('lines come', (lines) => lines.length > 0)));
    expect([listeners(), openAnswers()]).toEqual([before + 3, 3]);
    tails.forEach((tail) => tail.disconnect());
    // `afterEach` checks that all are released.
  });

  test('is released when its client disconnects before the first line', async () => {
    const threadId = await admin.api.newThread();
    const gone = new AbortController();
    const [url, init] = admin.request('tailThread', { params: { threadId } });
    const answer = fetch(url, { ...init, signal: gone.signal });
    await eventually(() => listeners() === before + 1, { what: 'the tail has begun' });
    gone.abort();
    await expect(answer).rejects.toThrow();
  });

  test('ends with unauthenticated when its token is revoked', async () => {
    const { token, secret } = await admin.do('mintToken', { body: { kind: 'operator', name: 'leaving' } });
    const run = await started();
    const tail = await admin.open('tailThread', { params: { threadId: run.threadId }, token: secret });
    await tail.until('lines come', (lines) => lines.length > 0);
    await admin.do('revokeToken', { params: { tokenId: token.id } });
    expect(await tail.ended()).toBe('whole');
    expect(tail.lines.at(-1)).toEqual({
      error: { code: 'unauthenticated', message: 'A valid access token is required.' },
    });
  });
});

describe('operators', () => {
  test('cancel and retry Runs, and terminate and delete Threads', async () => {
    const { threadId, runId } = await started();
    const cancelled = await admin.do('cancelRun', { params: { runId } });
    expect(cancelled.run).toMatchObject({ status: 'cancelled', work: null, mayBeRetried: true });
    expect((await admin.refused('cancelRun', { params: { runId } }))[0]).toBe('conflict');
    const mayBeRetried = async (id: string): Promise<boolean> =>
      (await admin.do('getRun', { params: { runId: id } })).run.mayBeRetried;
    for (const isArchived of [true, false]) {
      await admin.do(isArchived ? 'archiveThread' : 'unarchiveThread', { params: { threadId } });
      expect(await mayBeRetried(runId)).toBe(!isArchived);
    }
    const { run } = await admin.do('retryRun', { params: { runId } });
    expect(run).toMatchObject({ threadId, status: 'queued', trigger: 'resume', agentId, mayBeRetried: false });
    expect(await mayBeRetried(runId)).toBe(false);
    expect((await admin.refused('retryRun', { params: { runId } }))[0]).toBe('conflict');
    expect((await admin.refused('retryRun', { params: { runId: run.id } }))[0]).toBe('conflict');
    expect((await admin.do('terminateThread', { params: { threadId } })).thread.status).toBe('TERMINATED');
    const last = (await admin.do('getRun', { params: { runId: run.id } })).run;
    expect(last).toMatchObject({ status: 'cancelled', mayBeRetried: false });
    expect((await admin.refused('retryRun', { params: { runId: run.id } }))[0]).toBe('conflict');
    expect((await admin.api.get(`/threads/${threadId}`)).json.thread.status).toBe('TERMINATED');
    await admin.do('deleteThread', { params: { threadId } });
    for (const name of ['getThread', 'exportThread', 'tailThread', 'terminateThread', 'deleteThread'] as const) {
      expect([name, (await admin.refused(name, { params: { threadId } }))[0]]).toEqual([name, 'not_found']);
    }
    expect((await admin.refused('getRun', { params: { runId } }))[0]).toBe('not_found');
    const { rows } = await admin.pool.query('select from events where thread_id = $1', [threadId]);
    expect(rows).toHaveLength(0);
  });

  test('delete a Thread once with three parallel requests', async () => {
    const { threadId } = await started();
    const actions = await admin.actionsOf(async () => {
      const sent = Array.from({ length: 3 }, () => admin.send('deleteThread', { params: { threadId } }));
      expect((await Promise.all(sent)).map(({ status }) => status).toSorted()).toEqual([200, 404, 404]);
    });
    expect(actions).toEqual(['thread.deleted']);
  });
});

test('parallel cancellations of one Run add one audit entry', async () => {
  const threadId = await admin.api.newThread({ text: 'hi' });
  const runId = (await admin.api.get(`/threads/${threadId}`)).json.run.id;
  const entries = await admin.entriesOf(async () => {
    const sent = Array.from({ length: 8 }, () => admin.send('cancelRun', { params: { runId } }));
    const statuses = (await Promise.all(sent)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([200, ...Array<number>(7).fill(409)]);
  });
  expect(entries).toMatchObject([{ action: 'run.cancelled', target_id: runId, details: { threadId } }]);
});
