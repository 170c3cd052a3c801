import type { Queue } from 'bullmq';
import { Client } from 'pg';
import { SHOWN_QUEUE } from '#run-queue';
import { newId } from '#platform';
import { eventually } from '#testing';
import { AdminUnderTest, type Answered, type OpenLines } from './admin-under-test.testing.ts';

let admin: AdminUnderTest;
beforeAll(async () => {
  admin = await AdminUnderTest.start();
});
afterAll(() => admin.stop());

test('the queue shows its Runs and workers, and is paused and resumed', async () => {
  const threadId = await admin.api.newThread({ text: 'hi' });
  const { queue } = await admin.do('getQueue');
  expect(queue).toMatchObject({
    backend: 'postgresql',
    pausedAt: null,
    awaySince: null,
    runs: { ready: 1, leased: 0, waiting: 0, delayed: 0, limited: 0 },
    workers: [],
  });
  expect(queue.oldestReadyMs).toBeGreaterThanOrEqual(0);
  const paused = await admin.do('pauseQueue');
  expect(paused.queue.pausedAt).not.toBeNull();
  expect((await admin.do('pauseQueue')).queue.pausedAt).toBe(paused.queue.pausedAt);
  expect((await admin.do('runDoctor')).checks.find(({ name }) => name === 'queue')?.status).toBe('warning');
  expect((await admin.do('resumeQueue')).queue.pausedAt).toBeNull();
  await admin.do('deleteThread', { params: { threadId } });
  await admin.pool.query(
    `insert into workers (holder, slots, seen_at) values ('w1', 3, now()), ('old', 3, now() - interval '1 h')`,
  );
  const workers = [{ holder: 'w1', slots: 3, leased: 0, seenAt: expect.any(String) as string }];
  expect((await admin.do('getQueue')).queue).toMatchObject({ runs: { ready: 0 }, oldestReadyMs: null, workers });
});

test('four operators who pause or resume the queue concurrently add one audit entry', async () => {
  const four = (operation: 'pauseQueue' | 'resumeQueue') =>
    admin.actionsOf(() => Promise.all(Array.from({ length: 4 }, () => admin.do(operation))));
  expect(await four('pauseQueue')).toEqual(['queue.paused']);
  expect(await four('resumeQueue')).toEqual(['queue.resumed']);
});

test('the queue shows the pause of a BullMQ tool without a worker, and resume ends it', async () => {
  const shown = admin.api.app.get<Queue>(SHOWN_QUEUE);
  await shown.pause();
  const { queue } = await admin.do('getQueue');
  expect(queue.pausedBy).toEqual(['bullmq']);
  expect((await admin.do('getQueue')).queue.pausedAt).toBe(queue.pausedAt);
  const { overview } = await admin.do('getOverview');
  expect(overview.problems.find(({ kind }) => kind === 'queue_paused')?.since).toBe(queue.pausedAt);
  const { checks } = await admin.do('runDoctor');
  expect(checks.find(({ name }) => name === 'queue')).toEqual({
    name: 'queue',
    status: 'warning',
    message: 'A BullMQ tool has paused the queue; no Run starts. Run: spool queue resume',
  });
  const health = await fetch(`${new URL(admin.url).origin}/health/ready`);
  expect([health.status, await health.json()]).toMatchObject([200, { status: 'degraded', queue: 'ok' }]);
  expect((await admin.do('pauseQueue')).queue.pausedBy).toEqual(['bullmq', 'spool']);
  expect((await admin.do('resumeQueue')).queue).toMatchObject({ pausedAt: null, pausedBy: [] });
  expect(await shown.isPaused()).toBe(false);
  const { entries } = await admin.do('listAudit', { query: { limit: 2 } });
  expect(entries.map(({ action, details }) => [action, details])).toEqual([
    ['queue.resumed', { pausedAt: expect.any(String) as string, pausedBy: ['bullmq', 'spool'] }],
    ['queue.paused', {}],
  ]);

  // The tool ends its own pause.
  await shown.pause();
  expect((await admin.do('getQueue')).queue.pausedBy).toEqual(['bullmq']);
  await shown.resume();
  expect((await admin.do('getQueue')).queue).toMatchObject({ pausedAt: null, pausedBy: [] });
});

test('the doctor runs all checks, and a failed one does not affect the others', async () => {
  const statuses = async () =>
    Object.fromEntries((await admin.do('runDoctor')).checks.map(({ name, status }) => [name, status]));
  const own = ['versions', 'database', 'migrations', 'role', 'clock', 'queue', 'redis', 'workers', 'disk', 'blobs'];
  const all = [...own, 'agents', 'sandbox'];
  const well = await statuses();
  expect(Object.keys(well)).toEqual(all);
  expect(well).toMatchObject({
    versions: 'ok',
    migrations: 'ok',
    role: 'ok',
    clock: 'ok',
    queue: 'ok',
    redis: 'ok',
    blobs: 'ok',
  });
  await admin.pool.query(`update migrations set name = 'Later1' where name like 'Management%'`);
  expect((await statuses())['migrations']).toBe('failed');
  await admin.pool.query(`update migrations set name = 'Management1763700000005' where name = 'Later1'`);
  await admin.pool.query('alter table unclaimed_blobs rename to elsewhere');
  expect(await statuses()).toMatchObject({ blobs: 'failed', migrations: 'ok' });
  await admin.pool.query('alter table elsewhere rename to unclaimed_blobs');
});

describe('the sandbox check of the doctor', () => {
  const check = async () => (await admin.do('runDoctor')).checks.find(({ name }) => name === 'sandbox');
  const register = (holder: string, sandbox: object | null, seenAt = 'now()') =>
    admin.pool.query(`insert into workers (holder, slots, seen_at, sandbox) values ($1, 1, ${seenAt}, $2)`, [
      holder,
      sandbox,
    ]);
  beforeEach(() => admin.pool.query('delete from workers'));
  afterAll(() => admin.pool.query('delete from workers'));

  test('shows the results of all live workers, not of this process', async () => {
    const good = { isolation: 'bubblewrap', refused: null, warnings: [] };
    await register('a', good);
    await register('gone', { ...good, refused: 'It is gone.' }, `now() - interval '1 minute'`);
    expect(await check()).toEqual({
      name: 'sandbox',
      status: 'ok',
      message: 'Programs of tool servers run with bubblewrap.',
    });
    await register('b', { ...good, refused: 'Tool servers need bubblewrap.' });
    await register('c', { isolation: 'user', refused: null, warnings: ['One.', 'Two.'] });
    expect(await check()).toEqual({
      name: 'sandbox',
      status: 'warning',
      message: 'Worker b: It starts no tool servers. Tool servers need bubblewrap. Worker c: One. Worker c: Two.',
    });
  });

  test('is ok if no worker may start programs, including one of the previous release', async () => {
    await register('a', { isolation: null, refused: null, warnings: [] });
    await register('b', null);
    expect(await check()).toMatchObject({ status: 'ok', message: 'Starting programs as tool servers is disabled.' });
  });
});

describe('verify and rebuild', () => {
  test('find a wrong summary and repair it', async () => {
    const threadId = await admin.api.newThread({ text: 'hi' });
    await admin.pool.query(`update thread_summaries set title = 'wrong' where thread_id = $1`, [threadId]);
    const found = (await admin.lines('verify', { body: {} })).at(-1)!;
    expect(found).toMatchObject({ done: true, found: 1, byInvariant: { I7: 1 }, lastThreadId: threadId });
    expect(found.findings).toMatchObject([{ threadId, invariant: 'I7' }]);
    expect((await admin.lines('verify', { body: { from: threadId } })).at(-1)).toMatchObject({ streams: 0, found: 0 });
    const repaired = (await admin.lines('rebuildProjections', { body: {} })).at(-1)!;
    expect(repaired).toMatchObject({ done: true, differences: 1, byTable: { thread_summaries: 1 }, left: 0 });
    expect((await admin.lines('verify', { body: {} })).at(-1)).toMatchObject({ found: 0 });
    expect((await admin.do('getThread', { params: { threadId } })).thread.title).not.toBe('wrong');
  });

  /** Locks the streams against reads during the work. */
  async function whileHeld(work: () => Promise<void>): Promise<void> {
    const blocker = new Client({ connectionString: admin.api.databaseUrl });
    await blocker.connect();
    await blocker.query('begin; lock table streams in access exclusive mode');
    try {
      await work();
    } finally {
      await blocker.end();
    }
  }

  /** Returns the number of connections that wait for the lock. */
  const waiting = async (): Promise<number> => {
    const { rows } = await admin.pool.query<{ count: number }>(
      `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows[0]!.count;
  };

  test.each(['verify', 'rebuildProjections'] as const)(
    '%s returns 409 while it is running, and after a disconnect the next call waits for its end',
    async (name) => {
      const firstLine = ({ json }: Answered): unknown => json;
      let next!: OpenLines;
      await whileHeld(async () => {
        const first = admin.open(name, { body: {} });
        await eventually(async () => (await waiting()) === 1, { what: 'the first call is running' });
        const entries = await admin.entriesOf(async () => {
          const second = await admin.send(name, { body: {} });
          expect([second.status, firstLine(second)]).toEqual([
            409,
            {
              error: {
                code: 'conflict',
                message: expect.stringContaining('is already running in this process') as string,
              },
            },
          ]);
        });
        expect([entries, await waiting()]).toEqual([[], 1]);
        (await first).disconnect();
        const isBegun = async () => (next = await admin.open(name, { body: {} })).response.status === 200;
        await eventually(isBegun, { what: 'the server has noticed the disconnect' });
        expect(await waiting()).toBe(1); // the first has not ended
      });
      expect([await next.ended(), next.lines.at(-1)]).toMatchObject(['whole', { done: true }]);
    },
  );

  test('can run in parallel', async () => {
    await whileHeld(async () => {
      const both = [admin.open('verify', { body: {} }), admin.open('rebuildProjections', { body: {} })];
      await eventually(async () => (await waiting()) === 2, { what: 'both are running' });
      for (const each of both) (await each).disconnect();
    });
    for (const name of ['verify', 'rebuildProjections'] as const) {
      await eventually(async () => (await admin.send(name, { body: {} })).status === 200, {
        what: `${name} has ended`,
      });
    }
  });

  test('write a failure after the start as the last line', async () => {
    await whileHeld(async () => {
      const verifying = await admin.open('verify', { body: {} });
      expect(verifying.response.status).toBe(200);
      await eventually(async () => (await waiting()) === 1, { what: 'verify is running' });
      await admin.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'`,
      );
      expect(await verifying.ended()).toBe('whole');
      const message = 'The service cannot reach its database. Try again.';
      expect(verifying.lines).toEqual([{ error: { code: 'internal_error', message } }]);
    });
  });
});

test('a process that shuts down sends an error line at the end of each long answer', async () => {
  const stopping = await AdminUnderTest.start();
  const threadId = await stopping.api.newThread();
  const tail = await stopping.open('tailThread', { params: { threadId } });
  const stopped = stopping.stop();
  expect(await tail.ended()).toBe('whole');
  expect(tail.lines.at(-1)).toEqual({
    error: { code: 'internal_error', message: 'The process is shutting down. Try again.' },
  });
  await stopped;
});

test('the admin API has no routes other than its operations', async () => {
  const others: [string, string, number][] = [
    ['GET', '/', 404],
    ['PUT', '/organizations', 405],
    ['HEAD', '/organizations', 405],
    ['POST', '/audit', 405],
    ['DELETE', `/audit/${newId()}`, 404],
  ];
  for (const [method, path, status] of others) {
    const response = await fetch(admin.url + path, { method, headers: { authorization: `Bearer ${admin.token}` } });
    expect([method, path, response.status]).toEqual([method, path, status]);
  }
});
