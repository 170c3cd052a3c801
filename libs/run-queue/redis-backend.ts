import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRedisBackend, type ConnectionOptions } from 'bullmq';
import { Redis, type RedisOptions } from 'ioredis';
import { ConfigError, type Logger } from '#platform';
import type { BullBackend } from './bullmq-backend.ts';
import { logSparsely } from './log-sparsely.ts';

const CONNECT_TIMEOUT_MS = 2_000;
/** Runs must go on within 3 s of a Redis that is back (quality, F5). */
const MAX_RECONNECT_DELAY_MS = 500;
/** A producer hangs up on a silent Redis, so that what it has sent does not pile up. */
const PRODUCER_SILENCE_MS = 1_000;
const CONSUMER_SILENCE_MS = 5_000;

const COMMON = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  keepAlive: 10_000,
  retryStrategy: (times) => Math.min(50 * times, MAX_RECONNECT_DELAY_MS),
} satisfies RedisOptions;

/**
 * Redis that keeps jobs. Throws ConfigError when it may evict them. One that does not answer now is no reason not to
 * start: what waits for it waits in PostgreSQL.
 */
export async function openRedisBackend(
  url: string,
  name: string,
  logger: Logger,
): Promise<BullBackend<ConnectionOptions>> {
  // No queue in memory and no second try: who offers must not wait, and the dispatcher has it anyway.
  const producer = new Redis(url, {
    ...COMMON,
    socketTimeout: PRODUCER_SILENCE_MS,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
  });
  const warn = logSparsely(logger);
  producer.on('error', (error) => warn(error, 'queue: the connection to Redis broke'));
  const consumers: WatchedRedis[] = [];
  const close = async (): Promise<void> => {
    producer.disconnect();
    consumers.forEach(({ redis, stopWatching }) => {
      stopWatching();
      redis.disconnect();
    });
  };
  try {
    await once(producer, 'ready', { signal: AbortSignal.timeout(CONNECT_TIMEOUT_MS) });
    await refuseEviction(producer);
  } catch (error) {
    if (error instanceof ConfigError) {
      await close();
      throw error;
    }
    logger.warn({ err: error }, 'queue: Redis does not answer; Runs wait until it does');
  }
  producer.on('ready', () => {
    refuseEviction(producer).catch((error: unknown) => logger.error({ err: error }, 'queue: this Redis may lose jobs'));
  });
  return {
    factory: createRedisBackend,
    producer,
    connectConsumer: () => {
      const redis = new Redis(url, { ...COMMON, maxRetriesPerRequest: null });
      redis.on('error', (error) => warn(error, 'queue: a connection to Redis broke'));
      consumers.push({ redis, stopWatching: watchSilence(redis) });
      return redis;
    },
    // One hash tag a queue: all its keys live in one slot of a cluster.
    prefix: `{${name}}`,
    isAway: () => producer.status !== 'ready',
    close,
  };
}

interface WatchedRedis {
  redis: Redis;
  stopWatching: () => void;
}

/**
 * BullMQ watches its blocking read. The other connection of a worker would wait for a quarter of an hour for a Redis
 * that went without a word, as when its machine dies.
 */
function watchSilence(redis: Redis): () => void {
  const watch = async (): Promise<void> => {
    if (redis.status !== 'ready') return;
    const answer = await Promise.race([
      redis.ping().catch(() => 'broken'),
      sleep(CONSUMER_SILENCE_MS, 'silence', { ref: false }),
    ]);
    if (answer === 'silence') redis.disconnect(true);
  };
  const timer = setInterval(() => void watch(), CONSUMER_SILENCE_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** `INFO`, because managed Redis refuses `CONFIG GET`. */
async function refuseEviction(redis: Redis): Promise<void> {
  const policy = /^maxmemory_policy:(\S+)/m.exec(await redis.info('memory'))?.[1];
  if (policy === undefined || policy === 'noeviction') return;
  throw new ConfigError(
    `Wrong configuration: QUEUE_URL: this Redis has maxmemory-policy ${policy}, it must be noeviction`,
  );
}
