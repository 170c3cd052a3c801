import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { isRedisServerInstalled } from './private-redis.ts';
import { currentRun, runStartedAt } from './test-run.ts';

/** `describe`, skipped where there is no Redis; the end of the run then says so (run-services.ts). */
export function describeWithRedis(name: string, suite: () => void): void {
  (currentRun().redisUrl ? describe : describe.skip)(name, suite);
}

/** Likewise, for suites that break a redis-server of their own (`startPrivateRedis`). */
export function describeWithPrivateRedis(name: string, suite: () => void): void {
  (isRedisServerInstalled() ? describe : describe.skip)(name, suite);
}

/** The run's Redis, and a key prefix that nobody else has. What stands below it is removed when the run ends. */
export function redisUrl(): { url: string; prefix: string } {
  const { id, redisUrl: url } = currentRun();
  if (!url) throw new Error('No Redis in this run: use describeWithRedis');
  return { url, prefix: `${keyPrefix}${id}:${randomBytes(6).toString('hex')}` };
}

const keyPrefix = 'spool-test:';
const leftoverAgeMs = 24 * 60 * 60 * 1000;

/** Removes the keys of the run, and of runs that began so long ago that they are over. */
export async function deleteLeftoverKeys(url: string, ownRunId: string): Promise<void> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: null });
  await client.connect();
  try {
    for await (const keys of client.scanStream({ match: `${keyPrefix}*`, count: 1_000 })) {
      const over = (keys as string[]).filter((key) => {
        const runId = key.split(':')[1]!;
        return runId === ownRunId || runStartedAt(runId) < Date.now() - leftoverAgeMs;
      });
      if (over.length > 0) await client.unlink(...over);
    }
  } finally {
    client.disconnect();
  }
}
