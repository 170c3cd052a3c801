import { Redis } from 'ioredis';

export interface RedisInfo {
  version: string;
  /** `maxmemory-policy`; undefined where the server does not tell. */
  policy: string | undefined;
  /** Bytes of memory that its data take. */
  usedBytes: number | null;
  /** Of one PING. */
  latencyMs: number;
}

/**
 * Asks a Redis how it is, on a connection of its own: those of the process try again for ever, and would wait for it. Throws when it
 * does not answer within `patienceMs`, for each of connecting and three commands.
 */
export async function askRedis(url: string, patienceMs: number): Promise<RedisInfo> {
  const limits = { connectTimeout: patienceMs, commandTimeout: patienceMs };
  const redis = new Redis(url, { ...limits, lazyConnect: true, retryStrategy: () => null });
  redis.on('error', () => undefined); // told by what it is asked
  try {
    await redis.connect();
    const askedAt = performance.now();
    await redis.ping();
    const latencyMs = performance.now() - askedAt;
    const info = await redis.info();
    const field = (name: string): string | undefined => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1];
    const used = field('used_memory');
    return {
      version: field('redis_version') ?? 'of unknown version',
      policy: field('maxmemory_policy'),
      usedBytes: used === undefined ? null : Number(used),
      latencyMs,
    };
  } finally {
    redis.disconnect();
  }
}
