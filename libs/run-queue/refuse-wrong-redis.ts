import type { Redis } from 'ioredis';
import { ConfigError, serversOf, type RedisClient } from '#platform';

/**
 * Checks the server, or each master of a cluster, once it is ready. Throws ConfigError if one may evict jobs, or if the
 * address names another kind of Redis. Any other error means that the server does not answer.
 */
export async function refuseWrongRedis(
  client: RedisClient,
  ready: Promise<unknown> = Promise.resolve(),
): Promise<void> {
  await ready.catch((error: unknown) => {
    throw isNoCluster(error) ? wrong('this Redis is not a cluster; name one host, without +cluster') : error;
  });
  const checks = serversOf(client, 'master').map((master) => refuseWrongServer(master, client.isCluster));
  const errors = (await Promise.allSettled(checks)).flatMap((check): unknown[] =>
    check.status === 'rejected' ? [check.reason] : [],
  );
  // An unreachable master must not hide a wrong one.
  if (errors.length > 0) throw errors.find((error) => error instanceof ConfigError) ?? errors[0];
}

/** Uses `INFO`, because managed Redis rejects `CONFIG GET`. */
async function refuseWrongServer(server: Redis, inCluster: boolean): Promise<void> {
  const info = await server.info();
  const field = (name: string): string | undefined => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1];
  const mode = field('redis_mode');
  if (mode === 'sentinel') throw wrong('this is a Sentinel; write redis+sentinel://…/<master name>');
  if (mode === 'cluster' && !inCluster) throw wrong('this Redis is a node of a cluster; write redis+cluster://…');
  const policy = field('maxmemory_policy') ?? 'noeviction';
  if (policy !== 'noeviction') throw wrong(`this Redis has maxmemory-policy ${policy}; set it to noeviction`);
}

/** Returns whether ioredis failed because no node has slots. */
function isNoCluster(error: unknown): boolean {
  const { lastNodeError } = error as { lastNodeError?: Error };
  return lastNodeError?.message.includes('cluster support disabled') ?? false;
}

function wrong(what: string): ConfigError {
  return new ConfigError(`Wrong configuration: QUEUE_URL: ${what}`);
}
