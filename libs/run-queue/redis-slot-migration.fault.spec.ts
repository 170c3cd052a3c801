import type { RunJob } from '#event-store';
import { connectRedis } from '#platform';
import {
  createTestDatabase,
  describeWithPrivateRedis,
  eventually,
  startRedisCluster,
  type RedisCluster,
  type RedisServer,
  type TestDatabase,
} from '#testing';
import { underLoad } from './redis-failover.testsuite.ts';
import { Installation } from './run-queue.testing.ts';
import { jobIdOf } from './run-queue.ts';

// Real: PostgreSQL, BullMQ, a cluster of redis-servers.

describeWithPrivateRedis('run queue while a Redis cluster moves its slot', () => {
  let database: TestDatabase;
  let cluster: RedisCluster;
  let on: Installation;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());
  beforeEach(async () => {
    cluster = await startRedisCluster();
    on = await Installation.open(database.url, cluster.url);
    await on.registerWorker('worker', 8);
  }, 60_000);
  afterEach(async () => {
    try {
      await on.close();
    } finally {
      await cluster.stop();
    }
  });

  test('loses no Run under load, and continues after each move', async () => {
    await underLoad(on, async (consumed) => {
      const masters = new Set<RedisServer>();
      for (const node of cluster.nodes.slice(0, 3)) {
        const before = consumed.length;
        if ((await cluster.masterOf(`{${on.name}}`)) !== node) await cluster.migrateSlotOf(`{${on.name}}`, node);
        masters.add(await cluster.masterOf(`{${on.name}}`));
        await on.waitFor(consumed, before + 50);
      }
      expect(masters.size).toBe(3);
    });
  }, 60_000);

  test('keeps all jobs when the slot is moved key by key, and delivers each once', async () => {
    const key = `{${on.name}}`;
    const from = await cluster.masterOf(key);
    const to = cluster.nodes.slice(0, 3).find((node) => node !== from)!;
    const jobs = Array.from({ length: 20 }, (_, i): RunJob => ({
      runId: `run${i}`,
      threadId: 'thread',
      dispatch: 1,
    }));
    await on.queue.enqueue(jobs);
    await cluster.migrateSlotOf(key, to);
    expect(await on.queue.waitingCount()).toBe(20);
    const client = connectRedis(cluster.url, {});
    expect(await client.exists(`${key}:${on.name}:${jobIdOf(jobs[0]!)}`)).toBe(1);
    client.disconnect();
    const delivered: string[] = [];
    on.queue.consume(async ({ runId }) => void delivered.push(runId), 4);
    await eventually(() => delivered.length >= 20, { what: 'all jobs are delivered' });
    await eventually(async () => (await on.queue.waitingCount()) === 0, { what: 'no job waits' });
    expect(delivered.toSorted()).toEqual(jobs.map(({ runId }) => runId).toSorted());
  }, 60_000);
});
