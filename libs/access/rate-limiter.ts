import { Redis } from 'ioredis';
import type { Pool } from 'pg';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes, type RateLimiterAbstract } from 'rate-limiter-flexible';
import { namedStatement, type Logger } from '#platform';
import { PostgresLimiter } from './postgres-limiter.ts';

const PURGE_RATE_LIMITS = namedStatement(import.meta.dirname, 'purge-rate-limits.sql');

/** Length of a window, seconds (decisions, section 7). */
const WINDOW_S = 60;
/**
 * A store that does not answer within this is slow: requests must not wait for it. With a PostgreSQL that is slow they
 * wait for it anyway. Milliseconds.
 */
const PATIENCE_MS = { redis: 30, postgres: 300 };
/** Until it has answered, or so long, nobody asks it, but one request a time to see whether it is back. Milliseconds. */
const LEFT_ALONE_MS = 1_000;
/** More keys past their limit than this are forgotten, the oldest first: the store knows them. */
const MAX_SPENT = 1_000;
/** A Redis that is silent for so long is hung up on. Milliseconds. */
const SILENCE_MS = 1_000;

export interface RateLimiterOptions {
  /** Requests in a window. */
  limit: number;
  /** Where all processes count together: Redis if there is a URL, else PostgreSQL; with neither each counts alone. */
  redisUrl?: string | undefined;
  pool?: Pool | undefined;
  /** Of all keys in Redis: two installations on one Redis need two. */
  name: string;
  logger: Logger;
  /** Instead of what is usual for its store. Milliseconds. */
  patienceMs?: number | undefined;
}

/** What became of one request. */
export interface RateLimited {
  allowed: boolean;
  limit: number;
  remaining: number;
  /** Whole seconds until the window ends, 1 to 60. */
  resetSeconds: number;
}

/** Counts requests by key. With its store away the process counts alone: it never fails and never lets everything through. */
export class RateLimiter {
  private readonly limit: number;
  private readonly alone: RateLimiterMemory;
  private readonly shared: RateLimiterAbstract | null;
  private readonly redis: Redis | null;
  private readonly patienceMs: number;
  /** Until when the store is left alone, by `performance.now()`. */
  private leftAloneUntil = 0;
  /**
   * Until when a key is past the limit, likewise: not worth asking the store for. The library's own memory of that
   * (`inMemoryBlockOnConsumed`) goes by Date.now(): a clock put back by an hour would keep such keys out for an hour.
   */
  private readonly spentUntil = new Map<string, number>();

  constructor({ limit, redisUrl, pool, name, logger, patienceMs }: RateLimiterOptions) {
    this.limit = limit;
    const budget = { points: limit, duration: WINDOW_S };
    this.alone = new RateLimiterMemory(budget);
    this.redis = redisUrl === undefined ? null : connect(redisUrl, logger);
    this.patienceMs = patienceMs ?? PATIENCE_MS[this.redis === null ? 'postgres' : 'redis'];
    if (this.redis !== null) {
      this.shared = new RateLimiterRedis({
        ...budget,
        keyPrefix: `{${name}}:rate`,
        storeClient: this.redis,
        rejectIfRedisNotReady: true,
      });
    } else this.shared = pool === undefined ? null : new PostgresLimiter(pool, budget);
  }

  /** Keys of one kind must come with one limit. */
  async consume(key: string, limit = this.limit): Promise<RateLimited> {
    const result =
      (this.shared && (await this.consumeShared(this.shared, key, limit))) ?? (await count(this.alone, key));
    // What is blocked is told without its count.
    const allowed = result.consumedPoints > 0 && result.consumedPoints <= limit;
    const resetSeconds = Math.min(WINDOW_S, Math.max(1, Math.ceil(result.msBeforeNext / 1_000)));
    return { allowed, limit, remaining: allowed ? limit - result.consumedPoints : 0, resetSeconds };
  }

  /** What was consumed a moment ago shall not count. Never fails: what cannot be given back counts. */
  async giveBack(key: string): Promise<void> {
    this.spentUntil.delete(key);
    const alone = await this.alone.get(key);
    if (alone !== null && alone.consumedPoints > 0) await this.alone.reward(key);
    else await this.shared?.reward(key).catch(() => undefined);
  }

  /** Whether the store of its own answers. One in PostgreSQL answers where that does. */
  async answers(): Promise<boolean> {
    return this.redis === null || (await this.redis.ping()) === 'PONG';
  }

  close(): void {
    this.redis?.disconnect();
  }

  /** Null where the store is away, or too slow: what it is asked may then be counted there as well. */
  private async consumeShared(shared: RateLimiterAbstract, key: string, limit: number): Promise<RateLimiterRes | null> {
    const now = performance.now();
    const spentForMs = (this.spentUntil.get(key) ?? 0) - now;
    if (spentForMs > 0) return new RateLimiterRes(0, spentForMs);
    if (now < this.leftAloneUntil) return null;
    // Whoever comes while this one asks again does not wait with it.
    if (this.leftAloneUntil > 0) this.leftAloneUntil = now + LEFT_ALONE_MS;
    const answer = count(shared, key).catch(() => null);
    const result = await orTooSlow(answer, this.patienceMs);
    if (result !== TOO_SLOW) {
      this.leftAloneUntil = 0;
      this.noteSpent(key, result, limit);
      return result;
    }
    this.leftAloneUntil = performance.now() + LEFT_ALONE_MS;
    // It was slow once: no reason to count alone for longer than that.
    void answer.then((late) => {
      if (late !== null) this.leftAloneUntil = 0;
    });
    return null;
  }

  private noteSpent(key: string, result: RateLimiterRes | null, limit: number): void {
    this.spentUntil.delete(key);
    if (result === null || result.consumedPoints < limit) return;
    this.spentUntil.set(key, performance.now() + result.msBeforeNext);
    const [oldest] = this.spentUntil.keys();
    if (this.spentUntil.size > MAX_SPENT && oldest !== undefined) this.spentUntil.delete(oldest);
  }
}

const TOO_SLOW = Symbol('TOO_SLOW');

/** After its time it looks once more at what has arrived: it is not the store that was slow where this process was. */
function orTooSlow<T>(answer: Promise<T>, patienceMs: number): Promise<T | typeof TOO_SLOW> {
  return new Promise((resolve) => {
    const giveUp = (): void => void setImmediate(() => setImmediate(() => resolve(TOO_SLOW)));
    const timer = setTimeout(giveUp, patienceMs).unref();
    void answer.then((result) => {
      clearTimeout(timer);
      resolve(result);
    });
  });
}

/** Forgets windows that are over, where they are in PostgreSQL. */
export async function purgeRateLimits(pool: Pool): Promise<void> {
  await pool.query(PURGE_RATE_LIMITS);
}

/** A refusal is a result too. Rejects where the store is away. */
async function count(limiter: RateLimiterAbstract, key: string): Promise<RateLimiterRes> {
  return limiter.consume(key).catch((refused: unknown) => {
    if (refused instanceof RateLimiterRes) return refused;
    throw refused;
  });
}

function connect(url: string, logger: Logger): Redis {
  const redis = new Redis(url, {
    connectTimeout: 2_000,
    socketTimeout: SILENCE_MS,
    keepAlive: 10_000,
    retryStrategy: (times) => Math.min(50 * times, SILENCE_MS),
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
  });
  let isAway = false;
  redis.on('error', (err) => {
    if (!isAway) logger.warn({ err }, 'rate limits: Redis does not answer; this process counts alone');
    isAway = true;
  });
  redis.on('ready', () => (isAway = false));
  return redis;
}
