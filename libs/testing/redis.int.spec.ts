import { Redis } from 'ioredis';
import { startPrivateRedis, type PrivateRedis } from './private-redis.ts';
import { deleteLeftoverKeys, describeWithPrivateRedis, describeWithRedis, redisUrl } from './redis.ts';
import { currentRun, newRunId } from './test-run.ts';

describeWithRedis('The run’s Redis', () => {
  it('is cleared of the keys of this run and of old ones, and of nothing else', async () => {
    const { url, prefix } = redisUrl();
    const client = new Redis(url);
    const longAgo = (Date.now() - 2 * 24 * 60 * 60 * 1000).toString(36);
    const [own, old, other, foreign] = [
      `${prefix}:own`,
      `spool-test:${longAgo}abcdef:1:old`,
      `spool-test:${newRunId()}:1:other`,
      `spool-test-foreign:${newRunId()}`,
    ];
    const all = [own, old, other, foreign];
    await client.mset(all.flatMap((key) => [key, 'x']));
    await deleteLeftoverKeys(url, currentRun().id);
    expect(await client.mget(all)).toEqual([null, null, 'x', 'x']);
    await client.del(all);
    client.disconnect();
  });

  it('gives every caller another prefix', () => {
    expect(redisUrl().prefix).not.toBe(redisUrl().prefix);
  });
});

describeWithPrivateRedis('A private Redis', () => {
  let redis: PrivateRedis;
  let client: Redis;

  beforeEach(async () => {
    redis = await startPrivateRedis();
    client = new Redis(redis.url, { retryStrategy: () => 10, maxRetriesPerRequest: null });
    client.on('error', () => undefined);
  });
  afterEach(async () => {
    client.disconnect();
    await redis.stop();
  });

  it('comes back on the same port, empty, after it was killed', async () => {
    await client.set('key', 'value');
    await redis.kill();
    await redis.start();
    expect(await client.get('key')).toBeNull();
  });

  it('forgets all on flushAll', async () => {
    await client.set('key', 'value');
    await redis.flushAll();
    expect(await client.get('key')).toBeNull();
  });

  it('is silent while paused, and answers then', async () => {
    await client.ping();
    redis.pause();
    let answered = false;
    const pong = client.ping().then(() => (answered = true));
    const other = new Redis(redis.url, { commandTimeout: 50, enableReadyCheck: false });
    await expect(other.ping()).rejects.toThrow('Command timed out');
    other.disconnect();
    expect(answered).toBe(false);
    redis.resume();
    await pong;
  });
});
