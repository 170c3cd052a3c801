import type { Redis } from 'ioredis';
import { connectRedis, serversOf } from '#platform';

export interface RedisInfo {
  version: string;
  /** `maxmemory-policy`; undefined if the server does not report it. */
  policy: string | undefined;
  /** Memory used by its data, bytes. */
  usedBytes: number | null;
  /** Latency of one PING. */
  latencyMs: number;
  /** Replicas of this server, which can replace it. */
  replicas: number;
}

/**
 * Reads the state of a Redis over a separate connection, because the connections of the process retry forever.
 * Returns one entry for a single server, or one for each master of a cluster. Throws if connecting or one of the three
 * commands takes longer than `patienceMs`.
 */
export async function askRedis(url: string, patienceMs: number): Promise<[RedisInfo, ...RedisInfo[]]> {
  const limits = { connectTimeout: patienceMs, commandTimeout: patienceMs };
  const client = connectRedis(url, { ...limits, lazyConnect: true, retryStrategy: null });
  client.on('error', () => undefined); // reported by the rejected commands
  try {
    await client.connect();
    return (await Promise.all(serversOf(client, 'master').map(askServer))) as [RedisInfo, ...RedisInfo[]];
  } finally {
    client.disconnect();
  }
}

async function askServer(redis: Redis): Promise<RedisInfo> {
  await redis.ping(); // opens the connection to a node of a cluster
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
    replicas: Number(field('connected_slaves') ?? 0),
  };
}

/** Returns the memory of all masters together, and the slowest response. */
export function sumOf(masters: readonly RedisInfo[]): Pick<RedisInfo, 'usedBytes' | 'latencyMs'> {
  const used = masters.map(({ usedBytes }) => usedBytes);
  return {
    usedBytes: used.includes(null) ? null : used.reduce((sum: number, bytes) => sum + (bytes ?? 0), 0),
    latencyMs: Math.max(...masters.map(({ latencyMs }) => latencyMs)),
  };
}
