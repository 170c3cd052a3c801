import { openDatabase, type Database } from '#platform';
import { createTestDatabase, eventually, faultProxy, type FaultProxy, type TestDatabase } from '#testing';
import { WorkerHealth, type WorkerHealthParts } from './worker-health.ts';

// Real: PostgreSQL, behind a proxy that cuts it off. The states of the other parts are given.

let testDatabase: TestDatabase;
let proxy: FaultProxy;
let database: Database;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  proxy = await faultProxy(Number(new URL(testDatabase.url).port || 5432));
  const url = proxy.through(testDatabase.url);
  database = await openDatabase({ url, applicationName: 'spec', maxConnections: 2 });
});
afterAll(async () => {
  proxy.resume();
  await database.close();
  await proxy.close();
  await testDatabase.drop();
});

const QUEUE_WORKS = { waitingCount: () => Promise.resolve(0), isPausedByTool: () => Promise.resolve(false) };

const healthOf = (given: Partial<WorkerHealthParts> = {}): WorkerHealth =>
  new WorkerHealth({
    pool: database.pool,
    policy: { isTrusted: true },
    queue: QUEUE_WORKS,
    bus: { isUp: () => true },
    loop: { stage: 'running' },
    ...given,
  });

const NOT_YET = 'The worker does not take Runs yet.';
const NO_MORE = 'The worker is stopping and takes no more Runs.';
const QUEUE: unknown = expect.stringMatching(
  /^The queue does not answer.* \(since 20.*Z\): no Run is claimed until it answers;/,
);
const PAUSED: unknown = expect.stringMatching(
  /^A BullMQ tool has paused the queue \(since 20.*Z\): no Run starts\. Run: spool queue resume$/,
);
const WAKEUPS: unknown = expect.stringMatching(
  /^Wake-ups .* \(since 20.*Z\): interrupts reach this worker within a second/,
);

test.each<[string, Partial<WorkerHealthParts>, object]>([
  ['ready', {}, { database: 'ok', queue: 'ok', worker: 'running', reasons: [] }],
  ['starting', { loop: { stage: 'idle' } }, { worker: 'idle', reasons: [NOT_YET] }],
  ['stopping', { loop: { stage: 'draining' } }, { worker: 'draining', reasons: [NO_MORE] }],
  [
    'degraded',
    { queue: { waitingCount: () => Promise.reject(new Error('gone')), isPausedByTool: () => new Promise(() => {}) } },
    { queue: 'away', reasons: [QUEUE] },
  ],
  [
    'degraded',
    { queue: { ...QUEUE_WORKS, isPausedByTool: () => Promise.resolve(true) } },
    { queue: 'ok', reasons: [PAUSED] },
  ],
  ['degraded', { bus: { isUp: () => false } }, { queue: 'ok', reasons: [WAKEUPS] }],
])('reports a worker as %s with reasons: %j', async (status, given, expected) => {
  const isReported = async () => (expect(await healthOf(given).check()).toMatchObject({ status, ...expected }), true);
  await eventually(isReported, { what: 'all parts respond in time' });
});

test('reports `away` without PostgreSQL, since the first failed check', async () => {
  const health = healthOf();
  proxy.cut();
  const first = await health.check();
  expect(first).toMatchObject({ status: 'away', database: 'away' });
  expect(first.reasons).toEqual([
    expect.stringMatching(/^PostgreSQL does not answer \(since 20.*Z\): no Run can be claimed/),
  ]);
  expect((await health.check()).reasons).toEqual(first.reasons);
  proxy.resume();
  const isBack = async () => (expect(await health.check()).toMatchObject({ status: 'ready', reasons: [] }), true);
  await eventually(isBack, { what: 'it is ready again' });
});

test('relies on the connection of the policy watch while all connections of the pool are in use', async () => {
  const clients = await Promise.all([database.pool.connect(), database.pool.connect()]);
  try {
    expect(await healthOf().check()).toMatchObject({ status: 'ready', database: 'ok' });
    expect(await healthOf({ policy: { isTrusted: false } }).check()).toMatchObject({ status: 'away' });
  } finally {
    clients.forEach((client) => client.release());
  }
});
