import { pino } from 'pino';
import { ConfigError } from '#platform';
import {
  describeWithPrivateRedis,
  startPrivateRedis,
  startRedisCluster,
  startRedisSentinels,
  type PrivateRedis,
  type RedisCluster,
  type RedisSentinels,
} from '#testing';
import { openRunQueue } from './open-run-queue.ts';

// Real: redis-servers, Sentinels, a cluster.

const open = async (url: string): Promise<void> => {
  const queue = await openRunQueue({ url, name: 'test', logger: pino({ level: 'silent' }) });
  await queue.close();
};

/** Returns the address of one server, with the same user and password. */
const onlyAt = (url: string, host: string): string => url.replace(/^redis[^/]*(\/\/[^@]*@).*/, `redis:$1${host}`);

describeWithPrivateRedis('a process whose QUEUE_URL names the wrong kind of Redis', () => {
  let one: PrivateRedis;
  let sentinels: RedisSentinels;
  let cluster: RedisCluster;
  beforeAll(async () => {
    [one, sentinels, cluster] = await Promise.all([startPrivateRedis(), startRedisSentinels(), startRedisCluster()]);
  }, 60_000);
  afterAll(() => Promise.all([one, sentinels, cluster].map((servers) => servers.stop())));

  test.each([
    [
      'a cluster node as a single server',
      () => onlyAt(cluster.url, cluster.nodes[0]!.host),
      /is a node of a cluster; write redis\+cluster/,
    ],
    [
      'a Sentinel as a single server',
      () => onlyAt(sentinels.url, sentinels.sentinels[0]!.host),
      /is a Sentinel; write redis\+sentinel/,
    ],
    [
      'a single server as a cluster',
      () => one.url.replace('redis:', 'redis+cluster:'),
      /is not a cluster; name one host/,
    ],
  ])('does not start with %s', async (_what, url, message) => {
    await expect(open(url())).rejects.toThrow(ConfigError);
    await expect(open(url())).rejects.toThrow(message);
    await expect(open(url())).rejects.not.toThrow(/p@ss|p%40ss/);
  });

  test('does not start with a cluster in which one master may evict jobs', async () => {
    await open(cluster.url);
    await cluster.nodes[2]!.ask('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    await expect(open(cluster.url)).rejects.toThrow(
      /^Wrong configuration: QUEUE_URL: .* allkeys-lru; set it to noeviction$/,
    );
  });
});
