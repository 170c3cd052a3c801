import { createTestDatabase, describeWithRedis, eventually, redisUrl, type TestDatabase } from '#testing';
import { Installation } from './run-queue.testing.ts';
import { describeRunQueue, onRedis } from './run-queue.testsuite.ts';

// Real: PostgreSQL, Redis, BullMQ. Runs are rows of run_work; a claim deletes the row.

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

describe('on PostgreSQL', () => {
  describeRunQueue({
    open: () => Installation.open(database.url),
    loseData: async ({ pool }) => {
      await pool.query('delete from bullmq.job; delete from bullmq.meta; delete from bullmq.event');
    },
  });
});

describeWithRedis('on Redis', () =>
  describeRunQueue(
    onRedis(
      () => database.url,
      () => redisUrl().url,
    ),
  ),
);

describe('the connections to PostgreSQL', () => {
  let on: Installation;

  const openOne = async (): Promise<void> => {
    on = await Installation.open(database.url);
  };
  beforeEach(openOne);
  afterEach(() => on.close());

  const goOn = async (): Promise<void> => {
    const consumed = on.consumeRuns(8);
    on.startDispatcher();
    const ours = `from pg_stat_activity where datname = current_database() and application_name in ('spool queue', $1)`;
    let added = 0;
    const allAreOpen = async (): Promise<boolean> => {
      await on.addReadyRuns('org', 50);
      await on.waitFor(consumed, (added += 50));
      return (await on.pool.query(`select ${ours}`, [on.name])).rowCount! >= 4;
    };
    await eventually(allAreOpen, { what: 'all connections are open' });
    const { rows } = await on.pool.query<{ name: string }>(
      `select application_name as name, pg_terminate_backend(pid) ${ours}`,
      [on.name],
    );
    // The listening connection has the queue's name.
    expect(rows.map(({ name }) => name).sort()).toEqual(['spool queue', 'spool queue', 'spool queue', on.name]);
    await on.addReadyRuns('org', 50);
    await on.waitFor(consumed, added + 50);
  };
  const name = 'are at most four; workers and dispatcher continue after they are cut';
  it(name, goOn, 30_000);
});
