import { databaseAddress, redisUrlOf, requireDatabaseUrl, type Config, type Logger } from '#platform';
import type { LiveBus } from './bus.ts';
import { GatheringBus } from './gathering-bus.ts';
import { PostgresWakes } from './postgres-wakes.ts';
import { RedisWakes } from './redis-wakes.ts';

/**
 * Redis where there is one, else LISTEN/NOTIFY. Does not wait for either: until it answers, the hub's slow poll does. Two
 * installations on one server do not wake each other: LISTEN is by database, and on Redis the channel has its name. Not its
 * whole address, which may be another one for each process.
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
