import { readFileSync } from 'node:fs';
import { openDatabase } from '#platform';
import { createTestDatabase, eventually, type TestDatabase } from '#testing';
import { Installation } from './run-queue.testing.ts';
import { jobIdOf, type RunQueue } from './run-queue.ts';

// Real: PostgreSQL, BullMQ on it. Tests that do not depend on the backend of the queue, and a queue that fails on demand.

let database: TestDatabase;
let on: Installation;

beforeEach(async () => {
  database = await createTestDatabase();
  on = await Installation.open(database.url);
});

afterEach(async () => {
  await on.close();
  await database.drop();
});

function failingQueue(): { queue: RunQueue; state: { unavailable: boolean; asked: number } } {
  const state = { unavailable: false, asked: 0 };
  const answer = async <T>(ask: () => Promise<T>): Promise<T> => {
    if (state.unavailable) throw new Error('unavailable');
    return ask();
  };
  const queue: RunQueue = {
    enqueue: (jobs) => answer(() => on.queue.enqueue(jobs)),
    enqueueAhead: (jobs) => answer(() => on.queue.enqueueAhead(jobs)),
    waitingCount: () => (state.asked++, answer(() => on.queue.waitingCount())),
    isPausedByTool: () => on.queue.isPausedByTool(),
    liftToolPause: () => on.queue.liftToolPause(),
    ensureEpochMarker: () => on.queue.ensureEpochMarker(),
    consume: (handler, slots) => on.queue.consume(handler, slots),
    close: () => on.queue.close(),
  };
  return { queue, state };
}

const isUnavailable = async (): Promise<boolean> => (await on.controls.read()).unavailable;

it('enqueues a delayed Run when it is due, even if the dispatcher was idle', async () => {
  const deliveredAt = new Map<string, string>();
  const consumer = on.queue.consume(async ({ runId }) => {
    const { rows } = await on.pool.query<{ at: string }>('select clock_timestamp()::text as at');
    deliveredAt.set(runId, rows[0]!.at);
  }, 1);
  // An idle dispatcher looks only when nudged. It must remember when the Run is due.
  const dispatcher = on.startDispatcher(on.queue, 3_600_000);
  await on.lookedOnceMore();
  const { runId } = await on.addDelayedRun(900);
  const sent = jest.spyOn(on.pool, 'query');
  const hasRead = (): boolean => {
    dispatcher.nudge();
    return sent.mock.calls.some(([statement]) => (statement as { name?: string }).name === 'wake-delayed-runs');
  };
  await eventually(hasRead, { what: 'the dispatcher has read when the Run is due' });
  sent.mockRestore();
  const { rows: due } = await on.pool.query<{ at: string }>(
    'select due_at::text as at from run_work where run_id = $1',
    [runId],
  );
  const at = await eventually(() => deliveredAt.get(runId), { what: 'it is delivered' });
  await Promise.all([consumer.close(), dispatcher.stop()]);
  const { rows } = await on.pool.query<{ late: number }>(
    'select extract(epoch from $1::timestamptz - $2::timestamptz)::float8 * 1000 as late',
    [at, due[0]!.at],
  );
  expect(rows[0]!.late).toBeGreaterThanOrEqual(0);
});

it('admits and enqueues a Run that waits for a removed concurrency limit', async () => {
  const delivered = on.consumeRuns(1);
  const { runId } = await on.addLimitedRun();
  on.startDispatcher();
  await on.waitFor(delivered, 1);
  expect(delivered).toEqual([runId]);
});

it('enqueues a Run again that went ahead and lost its job, even if its organization has got a slot meanwhile', async () => {
  await on.addClaimedRuns('other', 4);
  on.startDispatcher();
  await on.lookedOnceMore();
  const [run] = await on.addReadyRuns('org', 1);
  const jobId = jobIdOf(run!);
  const isEnqueued = async (): Promise<boolean> => (await on.queue.shown.getJob(jobId)) !== undefined;
  await eventually(isEnqueued, { what: 'it is enqueued' });
  await on.addClaimedRuns('org', 1);
  await on.queue.shown.remove(jobId);
  await eventually(isEnqueued, { what: 'it is enqueued again', timeoutMs: 10_000 });
});

it('finds delayed Runs by an index among 20,000 other Runs', async () => {
  await on.pool.query(
    `insert into run_work (run_id, thread_id, organization_id, agent_id, state, dispatch, attempt, due_at, since, queue_ms, work_left)
     select i::text, i::text, 'o', 'a', case when i % 2 = 0 then 'leased' else 'ready' end, 1, 0,
            now() + interval '10 seconds', now(), 1, interval '1 hour'
     from generate_series(1, 20000) as i`,
  );
  const owner = await openDatabase({ url: database.ownerUrl, applicationName: 'spec', maxConnections: 1 });
  await owner.pool.query('analyze run_work');
  await owner.close();
  const text = readFileSync(`${import.meta.dirname}/wake-delayed-runs.sql`, 'utf8');
  const { rows } = await on.pool.query<Record<'QUERY PLAN', string>>(`explain ${text}`);
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan.match(/Index Scan using run_work_due/g)).toHaveLength(2);
  expect(plan).not.toMatch(/Seq Scan/);
});

/** Executes a statement of the dispatcher for 32 slots. Returns its plan and the pages that it read. */
async function explain(name: string): Promise<{ plan: string; pages: number }> {
  const text = readFileSync(`${import.meta.dirname}/${name}.sql`, 'utf8');
  const values = text.includes('$1') ? [160] : [];
  const { rows } = await on.pool.query<Record<'QUERY PLAN', string>>(`explain (analyze, buffers) ${text}`, values);
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  // The first line counts the whole statement.
  const [, hit = '0', , read = '0'] = /Buffers: shared(?: hit=(\d+))?( read=(\d+))?/.exec(plan)!;
  return { plan, pages: Number(hit) + Number(read) };
}

it.each(['find-ready-runs', 'find-slots-in-use'])(
  'reads little of a backlog of 100,000 Runs of one organization: %s',
  async (name) => {
    await on.pool.query(
      `insert into run_work (run_id, thread_id, organization_id, agent_id, state, dispatch, attempt, due_at, since, queue_ms, work_left)
       select i::text, i::text, case when i % 20000 = 0 then 'few' else 'many' end, 'a',
              case when i % 3000 = 0 then 'leased' else 'ready' end, 1, 0, now(), now() - i * interval '1 second', 1,
              interval '1 hour'
       from generate_series(1, 100000) as i`,
    );
    for (const prepare of ['select', 'analyze run_work']) {
      await on.pool.query(prepare);
      const { plan, pages } = await explain(name);
      expect(plan).not.toMatch(/Seq Scan|JIT/);
      // The table has over 2,000 pages.
      expect(pages).toBeLessThan(1_000);
    }
  },
  30_000,
);

/** Adds ready Runs of 5,000 organizations, two each, and a claimed one of every 200th. */
async function addManyOrganizations(): Promise<void> {
  await on.pool.query(
    `insert into run_work (run_id, thread_id, organization_id, agent_id, state, dispatch, attempt, due_at, since, queue_ms, work_left)
     select i::text, i::text, 'organization ' || i % 5000, 'a', case when i < 5000 and i % 200 = 0 then 'leased' else 'ready' end,
            1, 0, now() + interval '1 hour', now() - i * interval '1 ms', 1, interval '1 hour'
     from generate_series(1, 10000) as i`,
  );
}

it.each(['find-ready-runs', 'find-slots-in-use'])(
  'reads a few pages for each of 5,000 organizations with ready Runs: %s',
  async (name) => {
    await addManyOrganizations();
    for (const prepare of ['select', 'analyze run_work']) {
      await on.pool.query(prepare);
      const { plan, pages } = await explain(name);
      expect(plan).not.toMatch(/Seq Scan|JIT/);
      expect(pages).toBeLessThan(8 * 5_000);
    }
  },
  30_000,
);

it('stops queue time during an outage of the queue, even if the leader changes', async () => {
  const { queue, state } = failingQueue();
  const [early] = await on.addReadyRuns('org', 1);
  state.unavailable = true;
  const dispatcher = on.startDispatcher(queue);
  await eventually(isUnavailable, { what: 'the outage is recorded' });
  expect(await on.controls.isHeld()).toBe(true);
  expect(await on.controls.isPaused()).toBe(false);
  await on.letTimePass('1 hour');
  const [late] = await on.addReadyRuns('org', 1);
  await on.letTimePass('30 minutes');
  expect(await on.minutesLeft(early!.runId)).toBe(-80);
  await dispatcher.stop();

  // Another process.
  state.unavailable = false;
  on.startDispatcher(queue);
  await eventually(async () => !(await isUnavailable()), { what: 'the end of the outage is recorded' });
  expect(await on.controls.isHeld()).toBe(false);
  expect(await on.minutesLeft(early!.runId)).toBe(10);
  expect(await on.minutesLeft(late!.runId)).toBe(10);
});

it.each([
  { first: 'the pause', begin: ['pauseQueue', 'noteUnavailable'], end: ['resumeQueue', 'noteAvailable'] },
  { first: 'the outage', begin: ['noteUnavailable', 'pauseQueue'], end: ['noteAvailable', 'resumeQueue'] },
  {
    first: 'the pause, within the outage,',
    begin: ['noteUnavailable', 'pauseQueue'],
    end: ['resumeQueue', 'noteAvailable'],
  },
  {
    first: 'the outage, within the pause,',
    begin: ['pauseQueue', 'noteUnavailable'],
    end: ['noteAvailable', 'resumeQueue'],
  },
] as const)('gives the time of a pause and an outage back once, when $first ends first', async ({ begin, end }) => {
  const [run] = await on.addReadyRuns('org', 1);
  for (const step of [...begin, end[0]]) {
    await on.controls[step]();
    await on.letTimePass('20 minutes');
  }
  await on.controls[end[1]]();
  expect(await on.minutesLeft(run!.runId)).toBe(10);
});

it('gives back the time of a pause, an outage and a tool’s pause once, whichever ends first', async () => {
  const holds = [
    { begin: () => on.controls.pauseQueue(), end: () => on.controls.resumeQueue() },
    { begin: () => on.controls.noteUnavailable(), end: () => on.controls.noteAvailable() },
    { begin: () => on.pauseByTool(), end: () => on.resumeByTool() },
  ];
  const orders = [
    [0, 1, 2],
    [2, 1, 0],
    [1, 2, 0],
  ];
  for (const order of orders) {
    const [run] = await on.addReadyRuns('org', 1);
    for (const { begin } of holds) {
      await begin();
      await on.letTimePass('10 minutes');
    }
    for (const i of order) {
      await holds[i]!.end();
      await on.letTimePass('10 minutes');
    }
    // The queue ran for the last ten minutes.
    expect(await on.minutesLeft(run!.runId)).toBe(0);
    await on.pool.query('delete from run_work');
  }
});

it('works with a queue in a separate, empty database', async () => {
  const other = await createTestDatabase();
  const there = await Promise.all([1, 2, 3, 4].map(() => Installation.open(database.url, other.url)));
  const consumed = there[0]!.consumeRuns(2);
  there[0]!.startDispatcher();
  await there[0]!.addReadyRuns('org', 10);
  await there[0]!.waitFor(consumed, 10);
  const { rows } = await on.pool.query(
    `select from pg_stat_activity where datname = $1 and application_name = 'spool queue'`,
    [new URL(other.url).pathname.slice(1)],
  );
  expect(rows.length).toBeGreaterThan(0);
  await Promise.all(there.map((installation) => installation.close()));
  await other.drop();
});
