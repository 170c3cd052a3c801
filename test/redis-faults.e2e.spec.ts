import { describeWithPrivateRedis, eventually, startPrivateRedis, type PrivateRedis } from '#testing';
import { allRunsCompleted, expectHealthy } from './support/checks.ts';
import { createThread, inParallel, type Caller } from './support/client.ts';
import { startSystem, type System } from './support/system.ts';

const QUEUED = 200;

describeWithPrivateRedis('Redis may lose everything', () => {
  let redis: PrivateRedis;
  let system: System;
  let caller: Caller;

  beforeEach(async () => {
    redis = await startPrivateRedis();
    system = await startSystem({ queueUrl: redis.url, env: { WORKER_SLOTS: '4' } });
    ({ caller } = await system.startApi());
  }, 120_000);

  afterEach(async () => {
    await system.stop();
    await redis.stop();
  });

  test(`FLUSHALL while ${QUEUED} Runs are queued: all complete (F4)`, async () => {
    await inParallel(QUEUED, 16, (i) => createThread(caller, `queued ${i}`));
    await redis.flushAll();
    await system.startWorker();
    await inParallel(20, 4, (i) => createThread(caller, `beside ${i}`));
    await redis.flushAll();
    await allRunsCompleted(system.database, QUEUED + 20, 60_000);
    await expectHealthy(system.database);
  }, 120_000);

  test('Redis away: creates still answer, within 50 ms at p99, and Runs go on when it is back (F5)', async () => {
    await system.startWorker();
    await inParallel(50, 8, (i) => createThread(caller, `warm ${i}`));
    const beside = await createTimes();
    await allRunsCompleted(system.database, 50 + QUEUED, 60_000);
    await redis.kill();
    const away = await createTimes();
    // 50 ms on a machine that is not busy with something else; on one that is, what it takes with Redis there too.
    expect(p99(away)).toBeLessThan(Math.max(50, 2 * p99(beside)));
    await redis.start();
    await allRunsCompleted(system.database, 50 + 2 * QUEUED, 60_000);
    await expectHealthy(system.database);
  }, 120_000);

  /** Creates Threads, and tells how long each took, milliseconds. */
  const createTimes = (): Promise<number[]> =>
    inParallel(QUEUED, 4, async (i) => {
      const start = performance.now();
      const { status } = await createThread(caller, `timed ${i}`);
      expect(status).toBe(201);
      return performance.now() - start;
    });

  const p99 = (times: number[]): number => times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99) - 1]!;

  test('Redis stopped, its connections open and silent: creates still answer, and Runs go on (F5)', async () => {
    await system.startWorker();
    redis.pause();
    const created = await inParallel(50, 8, (i) => createThread(caller, `silent ${i}`));
    expect(created.every(({ status }) => status === 201)).toBe(true);
    redis.resume();
    await allRunsCompleted(system.database, 50, 60_000);
    await eventually(() => expectHealthy(system.database).then(() => true), { what: 'the database is healthy' });
  }, 120_000);
});
