import { openDatabase, scrape } from '#platform';
import { createTestDatabase, eventually, type TestDatabase } from '#testing';
import { reportInstallation } from './installation-metrics.ts';
import { Installation } from './run-queue.testing.ts';

jest.resetModules(); // Other spec files of this Jest worker have metrics too.

// Real: PostgreSQL, BullMQ on it.

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

/** Returns a metric of the current installation from a scrape. */
async function scraped(name: string, labels = ''): Promise<number> {
  const { pool, queue, controls } = on;
  const end = reportInstallation({ pool, queue, controls });
  const pattern = new RegExp(`^${name}${labels} (\\S+)$`, 'm');
  // A busy machine can be too slow for the first scrape.
  const value = async () => pattern.exec((await scrape()).text)?.[1];
  return Number(await eventually(value, { what: `${name} is reported` }).finally(end));
}

test.each([
  ['paused', () => on.controls.pauseQueue()],
  ['paused by a BullMQ tool', () => on.pauseByTool()],
  ['unavailable', () => on.controls.noteUnavailable()],
])('does not count Runs as overdue that wait for a queue that is %s, but counts expired leases', async (_, hold) => {
  await on.addReadyRuns('a', 1);
  await on.addDelayedRun(0);
  await on.addDelayedRun(null);
  await on.letTimePass('11 minutes');
  expect(await scraped('spool_due_rows')).toBe(2);
  await hold();
  expect(await scraped('spool_due_rows')).toBe(0);
  await on.pool.query(`update run_work set state = 'leased', holder = 'gone' where state = 'ready'`);
  expect(await scraped('spool_due_rows')).toBe(1);
});

test('counts live Runs by status; booting Runs are not counted as running', async () => {
  const [first] = await on.addReadyRuns('a', 4);
  await on.addDelayedRun(null);
  await on.addLimitedRun();
  await on.pool.query(
    `update run_work set state = 'leased', holder = 'w' where run_id in (select run_id from run_work where state = 'ready' limit 3)`,
  );
  const { rows } = await on.pool.query<{ runId: string }>(`select run_id as "runId" from run_work where holder = 'w'`);
  const [booting, ...running] = rows.map(({ runId }) => runId);
  for (const [runId, status] of [[booting, 'booting'], ...running.map((runId) => [runId, 'running'])])
    await on.pool.query(
      `insert into run_summaries (run_id, thread_id, status, trigger, created_at, updated_at)
       values ($1, $2, $3, 'user_prompt', now(), now())`,
      [runId, first!.threadId, status],
    );
  const counts = { queued: 3, booting: 1, running: 2, waiting_input: 0 };
  for (const [status, count] of Object.entries(counts))
    expect([status, await scraped('spool_live_runs', `\\{status="${status}"\\}`)]).toEqual([status, count]);
});

test('removes a metric that could not be read in time, instead of reporting an old value', async () => {
  const { queue, controls } = on;
  const busy = await openDatabase({ url: database.url, applicationName: 'spec', maxConnections: 1 });
  const end = reportInstallation({ pool: busy.pool, queue, controls });
  try {
    const isReported = async () => (await scrape()).text.includes('\nspool_due_rows 0\n');
    await eventually(isReported, { what: 'it is reported' });
    const taken = await busy.pool.connect();
    // After the cached values expired.
    const isRemoved = async () => !/^spool_due_rows /m.test((await scrape()).text);
    await eventually(isRemoved, { what: 'it is removed' }).finally(() => taken.release());
  } finally {
    end();
    await busy.close();
  }
});
