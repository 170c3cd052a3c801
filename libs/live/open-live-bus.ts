import { databaseAddress, redisUrlOf, requireDatabaseUrl, type Config, type Logger } from '#platform';
import type { LiveBus } from './bus.ts';
import { GatheringBus } from './gathering-bus.ts';
import { PostgresWakes } from './postgres-wakes.ts';
import { RedisWakes } from './redis-wakes.ts';

/**
 * Opens a bus on Redis if configured, else on LISTEN/NOTIFY. Does not wait for the connection, because LiveHub also polls.
 * Installations on one server do not wake each other: LISTEN is local to a database, and a Redis channel contains its name.
 * The channel leaves out the address, which can differ between processes.
 */
export function openLiveBus(config: Config, logger: Logger): LiveBus {
  const url = requireDatabaseUrl(config);
  const redisUrl = redisUrlOf(config);
  const channel = `spool:${config.QUEUE_NAME}`;
  return new GatheringBus((receive) => {
    if (redisUrl === undefined) return new PostgresWakes({ url, channel, receive, logger });
    const { database } = databaseAddress(url);
    return new RedisWakes({ url: redisUrl, channel: `${channel}:${database}`, receive, logger });
  }, logger);
}
