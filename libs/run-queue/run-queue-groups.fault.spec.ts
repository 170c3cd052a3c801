import {
  createTestDatabase,
  describeWithPrivateRedis,
  startRedisCluster,
  startRedisSentinels,
  type TestDatabase,
} from '#testing';
import { describeRunQueue, onRedis } from './run-queue.testsuite.ts';

// Real: PostgreSQL, Sentinels, a cluster, BullMQ. Runs are rows of run_work; a claim deletes the row.

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

for (const [where, start] of Object.entries({ Sentinels: startRedisSentinels, cluster: startRedisCluster }))
  describeWithPrivateRedis(`on Redis ${where}`, () => {
    let servers: { url: string; stop(): Promise<void> };
    beforeAll(async () => void (servers = await start()), 60_000);
    afterAll(() => servers.stop());
    const backend = onRedis(
      () => database.url,
      () => servers.url,
    );
    describeRunQueue({ ...backend, hasOnePort: false });
  });
