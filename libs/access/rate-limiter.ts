import type { Pool } from 'pg';
import {
  RateLimiterMemory,
  RateLimiterRedis,
  type RateLimiterAbstract,
  type RateLimiterRes,
} from 'rate-limiter-flexible';
import { connectRedis, FAIL_FAST, namedStatement, retryEvery, type Logger, type RedisClient } from '#platform';
import { PostgresLimiter } from './postgres-limiter.ts';
import { RateWindow, type Flight, type StoreCount } from './rate-window.ts';

const PURGE_RATE_LIMITS = namedStatement(import.meta.dirname, 'purge-rate-limits.sql');

/** Length of a window, seconds (docs/spec/decisions.md#rate-limit). */
const WINDOW_S = 60;
/** How long a request waits for the store, milliseconds. Longer for PostgreSQL, because a request needs PostgreSQL anyway. */
const PATIENCE_MS = { redis: 100, postgres: 1_000, process: 1_000 };
/** The interval between probes of a store that was too slow, milliseconds. */
const PROBE_MS = 1_000;
/** The maximum of windows in a process. Drops the oldest, with counts that the store has not acknowledged. */
const MAX_WINDOWS = 100_000;

export interface RateLimiterOptions {
  /** The default requests per window of a key. */
  limit: number;
  /** The shared store: Redis if there is a URL, else PostgreSQL. Without either, each process counts alone. */
  redisUrl?: string | undefined;
  pool?: Pool | undefined;
  /** Distinguishes installations on one Redis. */
  name: string;
  logger: Logger;
  /** Returns how many processes share a budget while the store does not respond. Default: 1. */
  processes?: (() => number) | undefined;
  /** Replaces the default of the store. Milliseconds. */
  patienceMs?: number | undefined;
}

/** The decision on one request. */
export interface RateLimited {
  allowed: boolean;
  limit: number;
  remaining: number;
  /** Whole seconds until the window ends, 1 to 60. */
  resetSeconds: number;
}

/**
 * Counts requests by key. The store decides. While it does not respond in time, each process admits its share of the
 * remaining budget: it never fails and never admits everything. The library's `insuranceLimiter` would admit a whole budget
 * per process, and forget these requests once the store responds again.
 */
export class RateLimiter {
  private readonly limit: number;
  /** The prefix of all keys in Redis. Its hash tag keeps them on one node of a cluster. */
  private readonly prefix: string;
  private readonly store: RateLimiterAbstract;
  private readonly redis: RedisClient | null;
  private readonly patienceMs: number;
  private readonly processes: () => number;
  /** The windows as this process knows them, oldest first. */
  private readonly windows = new Map<string, RateWindow>();
  /** Whether requests wait for the store. False from a slow response until the next one in time. */
  private isTrusted = true;
  /** The end of the current probe of an untrusted store, by `performance.now()`. Until then, other requests skip the store. */
  private probedUntil = 0;

  constructor({ limit, redisUrl, pool, name, logger, processes = () => 1, patienceMs }: RateLimiterOptions) {
    this.limit = limit;
    this.prefix = `{${name}}:rate`;
    this.processes = processes;
    this.redis = redisUrl === undefined ? null : connect(redisUrl, logger);
    const kind = this.redis !== null ? 'redis' : pool !== undefined ? 'postgres' : 'process';
    this.patienceMs = patienceMs ?? PATIENCE_MS[kind];
    // The library only counts and never refuses. Each window applies its own limit.
    const budget = { points: Number.MAX_SAFE_INTEGER, duration: WINDOW_S };
    if (this.redis !== null) {
      this.store = new RateLimiterRedis({
        ...budget,
        keyPrefix: this.prefix,
        storeClient: this.redis,
        rejectIfRedisNotReady: true,
      });
    } else this.store = pool === undefined ? new RateLimiterMemory(budget) : new PostgresLimiter(pool, budget);
  }

  /** Counts a request. A changed limit applies immediately, including requests that this window has already counted. */
  async consume(key: string, limit = this.limit): Promise<RateLimited> {
    const window = this.windowOf(key, limit);
    const left = window.isSpent ? null : await this.decide(key, window);
    const resetSeconds = Math.ceil(window.leftMs(performance.now()) / 1_000);
    return {
      allowed: left !== null,
      limit,
      remaining: left ?? 0,
      resetSeconds: Math.min(WINDOW_S, Math.max(1, resetSeconds)),
    };
  }

  /** Takes back a request that was just counted. Never fails: if the store does not respond, it stays counted. */
  async giveBack(key: string): Promise<void> {
    const isCounted = this.windows.get(key)?.giveBack() ?? true;
    if (isCounted) await orTooSlow(count(this.store.reward(key)), this.isTrusted ? this.patienceMs : 0);
  }

  /**
   * Returns true if Redis responds or is not used; rejects otherwise. Reads a key on the node of the counts, because a cluster
   * sends PING to any of its masters.
   */
  async answers(): Promise<boolean> {
    await this.redis?.exists(`${this.prefix}:probe`);
    return true;
  }

  close(): void {
    this.redis?.disconnect();
  }

  /** Returns how many requests are left; null if this one is refused. */
  private async decide(key: string, window: RateWindow): Promise<number | null> {
    const sentAt = performance.now();
    if (!this.isTrusted && sentAt < this.probedUntil) return window.decideAlone(null, this.processes());
    const flight = window.send(sentAt);
    const answer = count(this.store.consume(key, flight.points));
    const result = this.isTrusted ? await orTooSlow(answer, this.patienceMs) : TOO_SLOW;
    if (result === TOO_SLOW) {
      this.isTrusted = false;
      this.probedUntil = performance.now() + PROBE_MS;
      void answer.then((late) => this.settle(window, flight, late));
    } else if (result === null) window.fail(flight);
    else return window.decideByStore(flight, result, performance.now());
    return window.decideAlone(flight, this.processes());
  }

  /** Handles a response that arrived after its request was decided. */
  private settle(window: RateWindow, flight: Flight, late: StoreCount | null): void {
    const now = performance.now();
    this.probedUntil = 0;
    if (late === null) return window.fail(flight);
    window.acknowledge(flight, late, now);
    if (now - flight.sentAt <= this.patienceMs) this.isTrusted = true;
  }

  private windowOf(key: string, limit: number): RateWindow {
    const now = performance.now();
    const known = this.windows.get(key);
    if (known !== undefined && known.leftMs(now) > 0) {
      known.limit = limit;
      return known;
    }
    this.windows.delete(key);
    for (const [oldest, window] of this.windows) {
      if (window.leftMs(now) > 0 && this.windows.size < MAX_WINDOWS) break;
      this.windows.delete(oldest);
    }
    const window = new RateWindow(limit, now, WINDOW_S * 1_000);
    this.windows.set(key, window);
    return window;
  }
}

const TOO_SLOW = Symbol('TOO_SLOW');

/** Returns the result, or TOO_SLOW. Reads the socket once after the timeout, because this process may have been the slow one. */
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

/** Deletes expired windows in PostgreSQL. */
export async function purgeRateLimits(pool: Pool): Promise<void> {
  await pool.query(PURGE_RATE_LIMITS);
}

/** Returns null if the store is unavailable. */
async function count(answer: Promise<RateLimiterRes>): Promise<StoreCount | null> {
  const result = await answer.catch(() => null);
  // If the clock was set back, the library reports windows that are too long.
  return result && { points: result.consumedPoints, leftMs: Math.min(result.msBeforeNext, WINDOW_S * 1_000) };
}

function connect(url: string, logger: Logger): RedisClient {
  const redis = connectRedis(url, { ...FAIL_FAST, retryStrategy: retryEvery(1_000) });
  let isUnavailable = false;
  redis.on('error', (err) => {
    if (!isUnavailable)
      logger.warn({ err }, 'rate limit store unavailable; admitting this process’s share of each budget');
    isUnavailable = true;
  });
  redis.on('ready', () => (isUnavailable = false));
  return redis;
}
