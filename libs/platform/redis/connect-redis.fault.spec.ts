import { describeWithPrivateRedis, eventually, RedisGroup, startRedisCluster, startRedisSentinels } from '#testing';
import { connectRedis, connectRedisNode, FAIL_FAST, retryEvery, serversOf, type RedisClient } from './connect-redis.ts';
import { findFreePort } from '../embedded-postgres/embedded-postgres.ts';

// Real: redis-server, Sentinels and a cluster, with an ACL user and a private CA.

interface World {
  url: string;
  stop(): Promise<void>;
}

async function startOne(options: { tls: boolean }): Promise<World> {
  const group = await RedisGroup.open('a secured Redis', options);
  const { host } = await group.start(await findFreePort(), []);
  return { url: `${group.scheme}://${group.credentials}${host}/1${group.parameters}`, stop: () => group.stop() };
}

const OPTIONS = { ...FAIL_FAST, retryStrategy: retryEvery(100) };

describeWithPrivateRedis('Redis client', () => {
  const clients: RedisClient[] = [];
  const opened = <T extends RedisClient>(client: T): T => {
    clients.push(client);
    return client.on('error', () => undefined) as T;
  };
  const isReady = (client: RedisClient): Promise<boolean> =>
    eventually(() => client.status === 'ready', { what: 'the client is ready' });
  afterEach(() => clients.splice(0).forEach((client) => client.disconnect()));

  const kinds = [
    { kind: 'of one server', start: startOne, servers: 1 },
    { kind: 'of Sentinels', start: startRedisSentinels, servers: 1 },
    { kind: 'of a cluster', start: startRedisCluster, servers: 3 },
  ];
  const cases = kinds.flatMap((kind) =>
    [true, false].map((tls) => ({ ...kind, tls, how: tls ? 'with TLS' : 'without TLS' })),
  );

  describe.each(cases)('$kind, $how', ({ start, servers, tls }) => {
    let world: World;
    beforeAll(async () => void (world = await start({ tls })), 60_000);
    afterAll(() => world.stop());

    test('reads what it has written', async () => {
      const client = opened(connectRedis(world.url, OPTIONS));
      await isReady(client);
      for (const key of ['a', 'b', 'c', 'd']) expect(await client.set(key, `value of ${key}`)).toBe('OK');
      const other = opened(connectRedis(world.url, OPTIONS));
      await isReady(other);
      for (const key of ['a', 'b', 'c', 'd']) expect(await other.get(key)).toBe(`value of ${key}`);
      expect(serversOf(other, 'master')).toHaveLength(servers);
    });

    test('receives on one connection what another publishes', async () => {
      const [from, to] = [opened(connectRedisNode(world.url, OPTIONS)), opened(connectRedisNode(world.url, OPTIONS))];
      const heard: string[] = [];
      to.on('message', (_channel: string, message: string) => heard.push(message));
      await Promise.all([isReady(from), isReady(to)]);
      await to.subscribe('channel');
      const isHeard = async (): Promise<boolean> => {
        await from.publish('channel', 'hello');
        return heard.length > 0;
      };
      await eventually(isHeard, { what: 'the message is received' });
    });

    test('fails to connect with a wrong password', async () => {
      const errors: string[] = [];
      const client = opened(
        connectRedis(world.url.replace('spool:', 'spool:not'), { ...OPTIONS, retryStrategy: null }),
      );
      client.on('error', (error: Error & { lastNodeError?: Error }) => errors.push(`${error.lastNodeError ?? error}`));
      await eventually(() => errors.length > 0, { what: 'the client reports an error' });
      expect(errors[0]).toMatch(/WRONGPASS/);
      expect(client.status).not.toBe('ready');
    });

    const isCluster = servers > 1;
    test(`${isCluster ? 'resends' : 'fails'} a command when its connection closes`, async () => {
      const [client, other] = [opened(connectRedis(world.url, OPTIONS)), opened(connectRedis(world.url, OPTIONS))];
      await Promise.all([isReady(client), isReady(other)]);
      const popped = client.blpop('list', 0).catch((error: unknown) => error);
      const closeBlocked = async (): Promise<boolean> => {
        for (const server of serversOf(other, 'master')) {
          if (!/blocked_clients:[1-9]/.test(await server.info('clients'))) continue;
          await server.client('KILL', 'TYPE', 'normal');
          return true;
        }
        return false;
      };
      await eventually(closeBlocked, { what: 'the connection of the command is closed' });
      await other.rpush('list', 'element');
      expect(await popped).toEqual(isCluster ? ['list', 'element'] : expect.any(Error));
    });

    if (tls)
      test('fails to connect without the CA of the servers', async () => {
        const errors: string[] = [];
        const url = world.url.replace(/cacert=[^&]*&/, '');
        const client = opened(connectRedis(url, { ...OPTIONS, retryStrategy: null }));
        client.on('error', (error: Error & { lastNodeError?: Error }) =>
          errors.push(`${error.lastNodeError ?? error}`),
        );
        await eventually(() => errors.length > 0, { what: 'the client reports an error' });
        expect(errors[0]).toMatch(/self-signed|self signed|unable to verify|Connection is closed/);
        expect(client.status).not.toBe('ready');
      });
  });

  test('reconnects when its server is no longer the master', async () => {
    const group = await RedisGroup.open('two secured Redis', {});
    try {
      const server = await group.start(await findFreePort(), []);
      const other = await group.start(await findFreePort(), []);
      const client = opened(connectRedis(`redis://${group.credentials}${server.host}`, OPTIONS));
      await isReady(client);
      let closed = 0;
      client.on('close', () => void closed++);
      await server.ask('REPLICAOF', '127.0.0.1', other.port);
      await expect(client.set('a', 'b')).rejects.toThrow(/^READONLY/);
      await eventually(() => closed > 0, { what: 'the client disconnects' });
      await server.ask('REPLICAOF', 'NO', 'ONE');
      const writes = async (): Promise<boolean> => (await client.set('a', 'b')) === 'OK';
      await eventually(writes, { what: 'the client writes again' });
    } finally {
      await group.stop();
    }
  });
});
