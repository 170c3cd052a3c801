import { createLogger, openDatabase, type Database } from '#platform';
import { createTestDatabase, eventually, faultProxy, type FaultProxy, type TestDatabase } from '#testing';
import { registerApiProcess, type ApiProcesses } from './api-processes.ts';
import { purgeRateLimits } from './rate-limiter.ts';

// Real: PostgreSQL.

const logger = createLogger('silent', 'api processes spec');

let testDatabase: TestDatabase;
let database: Database;
let proxy: FaultProxy;
let behind: Database;
const registered: ApiProcesses[] = [];
/** Shorter than the defaults, for fast tests. */
const times = { beatMs: 200, keepMs: 2_000 };

const openOn = (url: string) => openDatabase({ url, applicationName: 'spec', maxConnections: 1 });

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = await openOn(testDatabase.url);
  proxy = await faultProxy(Number(new URL(testDatabase.url).port));
  behind = await openOn(proxy.through(testDatabase.url));
});

afterEach(() => Promise.all(registered.splice(0).map((one) => one.close())));

afterAll(async () => {
  await Promise.all([database.close(), behind.close()]);
  await proxy.close();
  await testDatabase.drop();
});

async function register(on = database): Promise<ApiProcesses> {
  const one = await registerApiProcess(on.pool, logger, times);
  registered.push(one);
  return one;
}

const becomes = (one: ApiProcesses, count: number) =>
  eventually(() => one.count() === count, { what: `the process counts ${count} API processes`, timeoutMs: 30_000 });

test('counts registered API processes, but not deregistered ones', async () => {
  const first = await register();
  expect(first.count()).toBe(1);
  const second = await register();
  expect(second.count()).toBe(2);
  await becomes(first, 2);
  await second.close();
  expect((await register()).count()).toBe(2);
});

test('counts a killed API process for a while after its row expires, and purges the row', async () => {
  const one = await register();
  const hasBeaten = async (): Promise<void> => {
    const renewed = `select from rate_limits where key <> 'api:killed' and expires_at > $1::timestamptz + interval '10 s'`;
    const { rows } = await database.pool.query<{ now: string }>('select clock_timestamp() as now');
    const isRenewed = async () => (await database.pool.query(renewed, [rows[0]!.now])).rowCount === 1;
    await eventually(isRenewed, { what: 'the process has sent another heartbeat' });
  };
  const row = `insert into rate_limits values ('api:killed', 1, clock_timestamp() + $1::integer * interval '1 s')`;
  await database.pool.query(row, [60]);
  await becomes(one, 2);
  await database.pool.query(`update rate_limits set expires_at = clock_timestamp() where key = 'api:killed'`);
  // As after an outage of PostgreSQL, the next heartbeat finds no other process.
  await hasBeaten();
  expect(one.count()).toBe(2);
  await becomes(one, 1);
  await purgeRateLimits(database.pool);
  const { rows } = await database.pool.query('select key from rate_limits');
  expect(rows).toEqual([{ key: expect.stringMatching(/^api:[0-9A-Z]{26}$/) as string }]);
});

test('does not count a rate limit window in the same table as an API process', async () => {
  await database.pool.query(`insert into rate_limits values
    ('rlflx:api:x', 1, clock_timestamp() + interval '60 s'), ('apj', 1, clock_timestamp() + interval '60 s')`);
  expect((await register()).count()).toBe(1);
});

test('keeps the last number of API processes while PostgreSQL is unreachable', async () => {
  await register();
  const cutOff = await register(behind);
  expect(cutOff.count()).toBe(2);
  proxy.cut();
  await register();
  await eventually(() => proxy.connectionCount() === 0, { what: 'the connection is closed' });
  expect(cutOff.count()).toBe(2);
  proxy.resume();
  await becomes(cutOff, 3);
});

test('deregisters an API process within seconds while PostgreSQL is silent, even during a heartbeat', async () => {
  const silent = await registerApiProcess(behind.pool, logger, times);
  proxy.stall();
  await eventually(() => behind.pool.totalCount - behind.pool.idleCount === 1, { what: 'a heartbeat is in progress' });
  const before = performance.now();
  await silent.close();
  // 2 s to connect and 2 s for the statement. Without its own timeout, a heartbeat would take 30 s.
  expect(performance.now() - before).toBeLessThan(10_000);
  proxy.resume();
  expect((await behind.pool.query('select')).rowCount).toBe(1);
});
