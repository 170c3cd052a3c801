import { once } from 'node:events';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { createRedisBackend, type ConnectionOptions } from 'bullmq';
import type { Redis } from 'ioredis';
import { ConfigError, connectRedis, FAIL_FAST, retryEvery, serversOf, type Logger, type RedisClient } from '#platform';
import type { BullBackend } from './bullmq-backend.ts';
import { throttledWarn } from './throttled-warn.ts';
import { refuseWrongRedis } from './refuse-wrong-redis.ts';

/** The longest wait for Redis at start. */
const READY_WITHIN_MS = 2_000;
/** Runs must continue within 3 s after Redis is back (F5 of docs/reliability.md#faults). */
const retryStrategy = retryEvery(500);
/** How often a worker's connections are checked, and how long one may be silent. */
const CONSUMER_CHECK_MS = 1_000;
const CONSUMER_SILENCE_MS = 2_000;

/**
 * Opens Redis as the queue. Throws ConfigError if it may evict jobs. Starts without a Redis that does not respond, because ready
 * Runs wait in PostgreSQL.
 */
export async function openRedisBackend(
  url: string,
  name: string,
  logger: Logger,
): Promise<BullBackend<ConnectionOptions>> {
  // Fails fast: the dispatcher retries, and commands to a silent Redis must not pile up.
  const producer = connectRedis(url, { ...FAIL_FAST, retryStrategy });
  const warn = throttledWarn(logger);
  producer.on('error', (error) => warn(error, 'queue producer connection to Redis failed (QUEUE_URL)'));
  producer.on('sentinelError', (error) => warn(error, 'sentinel named no master for the queue (QUEUE_URL)'));
  const consumers: WatchedRedis[] = [];
  const close = async (): Promise<void> => {
    producer.disconnect();
    consumers.forEach(({ redis, stopWatching }) => {
      stopWatching();
      redis.disconnect();
    });
  };
  try {
    const ready = once(producer, 'ready', { signal: AbortSignal.timeout(READY_WITHIN_MS) });
    await refuseWrongRedis(producer, ready);
  } catch (error) {
    if (error instanceof ConfigError) {
      await close();
      throw error;
    }
    logger.warn({ err: error }, 'queue unavailable; runs wait until the Redis of QUEUE_URL answers');
  }
  producer.on('ready', () => {
    refuseWrongRedis(producer).catch((error: unknown) =>
      logger.error({ err: error }, 'redis check failed; jobs may be lost'),
    );
  });
  return {
    factory: createRedisBackend,
    producer,
    connectConsumer: () => {
      const redis = connectRedis(url, { retryStrategy, maxRetriesPerRequest: null });
      redis.on('error', (error) => warn(error, 'queue consumer connection to Redis failed (QUEUE_URL)'));
      consumers.push({ redis, stopWatching: watchSilence(redis) });
      return redis;
    },
    // The hash tag keeps all keys of the queue in one slot of a cluster.
    prefix: `{${name}}`,
    isUnavailable: () => producer.status !== 'ready',
    close,
  };
}

interface WatchedRedis {
  redis: RedisClient;
  stopWatching: () => void;
}

/**
 * Disconnects silent connections of a worker. BullMQ only watches its blocking read. The other connections would wait
 * 15 minutes for a Redis that vanished without closing them, for example because its machine died.
 */
function watchSilence(redis: RedisClient): () => void {
  const watch = async (server: Redis): Promise<void> => {
    if (!isExpectedToAnswer(server, redis)) return;
    const answer = await Promise.race([server.ping().catch(() => 'broken'), silence()]);
    if (answer === 'silence' && isExpectedToAnswer(server, redis)) server.disconnect(true);
  };
  const timer = setInterval(() => {
    for (const server of serversOf(redis)) void watch(server);
  }, CONSUMER_CHECK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Resolves after the allowed silence and one more read of the sockets, because this process may have been blocked. */
async function silence(): Promise<'silence'> {
  await sleep(CONSUMER_SILENCE_MS, undefined, { ref: false });
  await nextTurn();
  return nextTurn('silence');
}

/** Returns whether silence is a failure. A connection to a cluster node may never become ready; others reconnect by themselves. */
function isExpectedToAnswer(server: Redis, client: RedisClient): boolean {
  return client.isCluster ? !['wait', 'close', 'end'].includes(server.status) : server.status === 'ready';
}
