import { isDeepStrictEqual } from 'node:util';
import { Client } from 'pg';
import { monotonicFactory } from 'ulid';
import { createLogger, loadConfig } from '#platform';
import {
  createTestDatabase,
  describeWithPrivateRedis,
  eventually,
  faultProxy,
  type FaultProxy,
  nightTest,
  type PrivateRedis,
  startPrivateRedis,
  startRedisCluster,
  type TestDatabase,
} from '#testing';
import type { LiveBus } from './bus.ts';
import { openLiveBus } from './open-live-bus.ts';

// Real: PostgreSQL, Redis, both connections of each bus. Two buses stand for two processes, which share only the server.

const logger = createLogger('silent', 'test');
const newId = monotonicFactory();

interface World {
  /** Opens a bus through the proxy. */
  open(queueName?: string): LiveBus;
  openDirect: () => LiveBus;
  /** Breaks all connections of all buses. */
  breakConnections(): Promise<void>;
  proxy: FaultProxy;
}

let database: TestDatabase;
const open = new Set<LiveBus>();

beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await Promise.all([...open].map((bus) => bus.close()));
  open.clear();
});
afterAll(() => database.drop());

function openBus(env: Record<string, string>, queueName = 'test'): LiveBus {
  const bus = openLiveBus(loadConfig({ DATABASE_URL: database.url, QUEUE_NAME: queueName, ...env }), logger);
  open.add(bus);
  return bus;
}

function hearing(bus: LiveBus) {
  const heard: { threadId: string; version: number }[] = [];
  bus.onWake((threadId, version) => heard.push({ threadId, version }));
  return heard;
}

/** Repeats a wake-up until it arrives, because a hint can be lost. Returns its Thread. */
async function untilHeard(from: LiveBus, to: LiveBus): Promise<string> {
  const threadId = newId();
  let isHeard = false;
  const remove = to.onWake((woken) => (isHeard ||= woken === threadId));
  let version = 0;
  const ask = (): boolean => {
    from.publish(threadId, ++version);
    return isHeard;
  };
  await eventually(ask, { what: 'a wake-up arrives', timeoutMs: 30_000 });
  remove();
  return threadId;
}

const about = (threadId: string) => (wake: { threadId: string }) => wake.threadId === threadId;

function busSuite(world: () => World): void {
  afterEach(() => world().proxy.resume());

  it('wakes another process with the highest of several versions published together', async () => {
    const [from, to] = [world().open(), world().open()];
    await untilHeard(from, to);
    const heard = hearing(to);
    const threadIds = Array.from({ length: 1_000 }, () => newId());
    for (let version = 1; version <= 5; version++) threadIds.forEach((threadId) => from.publish(threadId, version));
    const wakes = () => heard.filter(({ threadId }) => threadIds.includes(threadId));
    const latest = () => new Map(wakes().map(({ threadId, version }) => [threadId, version]));
    const expected = new Map(threadIds.map((threadId) => [threadId, 5]));
    await eventually(() => isDeepStrictEqual(latest(), expected), { what: 'all Threads are woken' });
    // The very first wake-up may have been sent alone, at its first version.
    expect(wakes().length).toBeLessThanOrEqual(threadIds.length + 1);
  });

  it('wakes its own listeners once, before publish returns', async () => {
    const [bus, other] = [world().open(), world().open()];
    await untilHeard(bus, other);
    const heard = hearing(bus);
    const threadId = newId();
    bus.publish(threadId, 7);
    expect(heard).toEqual([{ threadId, version: 7 }]);
    await untilHeard(other, bus); // by now the echo has come, if there is one
    expect(heard.filter(about(threadId))).toHaveLength(1);
  });

  it('does not wake an installation with another name', async () => {
    const [from, to, stranger] = [world().open(), world().open(), world().open('other')];
    const strangers = world().open('other');
    await untilHeard(strangers, stranger);
    const heard = hearing(stranger);
    const threadId = await untilHeard(from, to);
    await untilHeard(strangers, stranger);
    expect(heard.filter(about(threadId))).toEqual([]);
  });

  it('reconnects after its connections broke', async () => {
    const [from, to] = [world().open(), world().open()];
    await untilHeard(from, to);
    await world().breakConnections();
    await untilHeard(from, to);
  });

  const doesNotBlock = async (): Promise<void> => {
    const [from, to] = [world().open(), world().open()];
    await untilHeard(from, to);
    world().proxy.stall();
    for (let i = 0; i < 20_000; i++) from.publish(newId(), 1);
    world().proxy.resume();
    await untilHeard(from, to);
  };
  it('does not block publishers while the server is silent', doesNotBlock, 60_000);

  it('reopens a half-open connection that only listens', async () => {
    const { proxy, openDirect } = world();
    const [from, to] = [openDirect(), world().open()];
    await untilHeard(from, to);
    const connections = proxy.connectionCount();
    proxy.stall();
    const isTryingAgain = (): boolean => proxy.connectionCount() > connections;
    await eventually(isTryingAgain, { what: 'another connection is opened', timeoutMs: 30_000 });
    proxy.resume();
    await untilHeard(from, to);
  });

  const closesQuickly = async (): Promise<void> => {
    const [from, to] = [world().open(), world().open()];
    await untilHeard(from, to);
    world().proxy.stall();
    from.publish(newId(), 1);
    await from.close();
    world().proxy.resume();
  };
  it('closes even while the server is silent', closesQuickly, 60_000);
}

describe('live bus on PostgreSQL', () => {
  let proxy: FaultProxy;
  beforeAll(async () => {
    proxy = await faultProxy(Number(new URL(database.url).port || 5432));
  });
  afterAll(() => proxy.close());

  async function asAdmin<T>(act: (client: Client) => Promise<T>): Promise<T> {
    const client = new Client({ connectionString: database.url });
    await client.connect();
    try {
      return await act(client);
    } finally {
      await client.end();
    }
  }

  const OF_BUSES = `application_name = 'spool live' and datname = current_database()`;
  /** Waits for one connection per bus, after those of earlier buses have ended. */
  const untilTwo = (client: Client): Promise<unknown> =>
    eventually(async () => (await client.query(`select from pg_stat_activity where ${OF_BUSES}`)).rowCount === 2, {
      what: 'there are two connections',
    });

  busSuite(() => ({
    proxy,
    openDirect: () => openBus({}),
    open: (name) => openBus({ DATABASE_URL: proxy.through(database.url) }, name),
    breakConnections: () =>
      asAdmin(async (client) => {
        await untilTwo(client);
        await client.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${OF_BUSES}`);
      }),
  }));

  it('opens one connection', async () => {
    const bus = openBus({});
    await untilHeard(bus, openBus({}));
    await asAdmin(untilTwo);
  });
});

describeWithPrivateRedis('live bus on Redis', () => {
  let redis: PrivateRedis;
  let proxy: FaultProxy;
  beforeAll(async () => {
    redis = await startPrivateRedis();
    proxy = await faultProxy(redis.port);
  });
  afterAll(async () => {
    await proxy.close();
    await redis.stop();
  });

  busSuite(() => ({
    proxy,
    openDirect: () => openBus({ REDIS_URL: redis.url }),
    open: (name) => openBus({ REDIS_URL: proxy.through(redis.url) }, name),
    breakConnections: async () => {
      await redis.kill();
      await redis.start();
    },
  }));

  it('uses the Redis of the queue without REDIS_URL', async () => {
    await untilHeard(openBus({ QUEUE_URL: redis.url }), openBus({ REDIS_URL: redis.url }));
  });

  it('works again after Redis was suspended', async () => {
    const [from, to] = [openBus({ REDIS_URL: redis.url }), openBus({ REDIS_URL: redis.url })];
    await untilHeard(from, to);
    redis.pause();
    for (let i = 0; i < 20_000; i++) from.publish(newId(), 1);
    redis.resume();
    await untilHeard(from, to);
  });

  it('does not wake an installation on another database', async () => {
    const elsewhere = { REDIS_URL: redis.url, DATABASE_URL: 'postgres://127.0.0.1/elsewhere' };
    const [stranger, strangers] = [openBus(elsewhere), openBus(elsewhere)];
    await untilHeard(strangers, stranger);
    const heard = hearing(stranger);
    const threadId = await untilHeard(openBus({ REDIS_URL: redis.url }), openBus({ REDIS_URL: redis.url }));
    await untilHeard(strangers, stranger);
    expect(heard.filter(about(threadId))).toEqual([]);
  });
});

describeWithPrivateRedis('live bus on a Redis cluster', () => {
  nightTest('delivers wake-ups across nodes, even after nodes die', async () => {
    const cluster = await startRedisCluster();
    try {
      const buses = Array.from({ length: 6 }, () => openBus({ REDIS_URL: cluster.url }));
      for (const to of buses.slice(1)) await untilHeard(buses[0]!, to);
      for (const node of cluster.nodes.slice(0, 4)) await node.kill();
      for (const to of buses.slice(1)) await untilHeard(buses[0]!, to);
    } finally {
      await cluster.stop();
    }
  });
});
