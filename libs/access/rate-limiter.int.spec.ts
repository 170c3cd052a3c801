import { openDatabase, createLogger, type Database } from '#platform';
import {
  createTestDatabase,
  describeWithPrivateRedis,
  describeWithRedis,
  eventually,
  nightTest,
  type FaultProxy,
  faultProxy,
  type PrivateRedis,
  redisUrl,
  startPrivateRedis,
  startRedisCluster,
  type TestDatabase,
} from '#testing';
import { RateLimiter, type RateLimiterOptions } from './rate-limiter.ts';

// Real: PostgreSQL, Redis.

const logger = createLogger('silent', 'rate-limiter spec');
const opened: RateLimiter[] = [];
/** Makes keys unique. */
let keys = 0;
/** The default patience, for tests of it. Other tests are more patient, because the machine may be slow. */
const usualPatience = { patienceMs: undefined };

function open(options: Partial<RateLimiterOptions>): RateLimiter {
  const limiter = new RateLimiter({ limit: 10, name: `spec-${Math.random()}`, logger, patienceMs: 10_000, ...options });
  opened.push(limiter);
  return limiter;
}

afterEach(() => opened.splice(0).forEach((limiter) => limiter.close()));

async function consume(limiters: RateLimiter[], count: number, key = 'token'): Promise<number> {
  let allowed = 0;
  for (let i = 0; i < count; i++) if ((await limiters[i % limiters.length]!.consume(key)).allowed) allowed++;
  return allowed;
}

describe('rate limiter without a store', () => {
  test('allows the limit per window and returns the remaining requests and the reset time', async () => {
    const limiter = open({});
    expect(await limiter.consume('token')).toEqual({ allowed: true, limit: 10, remaining: 9, resetSeconds: 60 });
    expect(await consume([limiter], 20)).toBe(9);
    const refused = await limiter.consume('token');
    expect(refused).toMatchObject({ allowed: false, limit: 10, remaining: 0 });
    expect(refused.resetSeconds).toBeGreaterThan(50);
    expect((await limiter.consume('another')).allowed).toBe(true);
  });

  test('applies the limit of the key and gives back requests', async () => {
    await holdsOther([open({})]);
  });

  test('applies a changed limit within a window', async () => {
    await holdsChanging([open({})]);
  });
});

/** Tests a key whose limit changes in its window, and a key with a far higher limit. */
async function holdsChanging(limiters: RateLimiter[]): Promise<void> {
  const next = (i: number) => limiters[i % limiters.length]!;
  const allowedOf = async (count: number, limit: number, key = 'changing'): Promise<number> => {
    let allowed = 0;
    for (let i = 0; i < count; i++) if ((await next(i).consume(key, limit)).allowed) allowed++;
    return allowed;
  };
  expect(await allowedOf(4, 5)).toBe(4);
  expect(await next(0).consume('changing', 7)).toMatchObject({ allowed: true, limit: 7, remaining: 2 });
  expect(await next(1).consume('changing', 3)).toMatchObject({ allowed: false, limit: 3, remaining: 0 });
  // The process refused the last one from memory, so the store did not count it.
  expect(await allowedOf(20, 15)).toBe(15 - 5);
  expect(await allowedOf(40, 25, 'many')).toBe(25);
}

/** Tests a key with a limit of 3, and requests that are given back. */
async function holdsOther(limiters: RateLimiter[]): Promise<void> {
  const next = (i: number) => limiters[i % limiters.length]!;
  const answers: unknown[] = [];
  for (let i = 0; i < 5; i++) {
    const { allowed, limit, remaining } = await next(i).consume('login', 3);
    answers.push([allowed, limit, remaining]);
    if (i < 2) await next(i).giveBack('login');
  }
  expect(answers).toEqual([
    [true, 3, 2],
    [true, 3, 2],
    [true, 3, 2],
    [true, 3, 1],
    [true, 3, 0],
  ]);
  for (const limiter of limiters) expect((await limiter.consume('login', 3)).allowed).toBe(false);
}

describe('rate limiters of two processes on PostgreSQL', () => {
  let testDatabase: TestDatabase;
  let database: Database;

  beforeAll(async () => {
    testDatabase = await createTestDatabase();
    database = await openDatabase({ url: testDatabase.url, applicationName: 'spec', maxConnections: 4 });
  });

  afterAll(async () => {
    await database.close();
    await testDatabase.drop();
  });

  test('share a budget in sequential and concurrent requests', async () => {
    const limiters = [open({ pool: database.pool }), open({ pool: database.pool })];
    expect(await consume(limiters, 30)).toBe(10);
    const results = await Promise.all(Array.from({ length: 30 }, (_, i) => limiters[i % 2]!.consume('concurrent')));
    expect(results.filter(({ allowed }) => allowed)).toHaveLength(10);
  });

  test('apply the limit of the key and give back requests', async () => {
    await holdsOther([open({ pool: database.pool }), open({ pool: database.pool })]);
  });

  test('apply a changed limit within a window', async () => {
    await holdsChanging([open({ pool: database.pool }), open({ pool: database.pool })]);
  });

  test('end a window by the clock of PostgreSQL', async () => {
    const { resetSeconds } = await open({ pool: database.pool }).consume('clock');
    expect(resetSeconds).toBe(60);
    await database.pool.query(`update rate_limits set expires_at = now() - interval '1 s' where key like '%clock'`);
    expect(await open({ pool: database.pool }).consume('clock')).toMatchObject({ remaining: 9, resetSeconds: 60 });
  });

  test('begin a new window even if the process clock was set back', async () => {
    const limiter = open({ pool: database.pool });
    const nearEnd = `update rate_limits set expires_at = clock_timestamp() + interval '300 ms' where key like '%set back'`;
    expect(await consume([limiter], 9, 'set back')).toBe(9);
    await database.pool.query(nearEnd);
    await limiter.consume('set back'); // the last one of this window
    const setBack = jest.spyOn(Date, 'now').mockReturnValue(Date.now() - 3_600_000);
    try {
      await eventually(async () => (await limiter.consume('set back')).allowed, { what: 'the next window begins' });
    } finally {
      setBack.mockRestore();
    }
  });

  const doesNotWait = async (): Promise<void> => {
    const key = `hot ${keys++}`;
    await open({ pool: database.pool }).consume(key);
    const limiter = open({ pool: database.pool, ...usualPatience });
    const holder = await database.pool.connect();
    try {
      await holder.query('begin');
      await holder.query('select from rate_limits where key like $1 for update', [`%${key}`]);
      // The row is locked until all are decided.
      const results = await Promise.all(Array.from({ length: 20 }, () => limiter.consume(key)));
      expect(results.filter(({ allowed }) => allowed)).toHaveLength(10);
    } finally {
      await holder.query('rollback');
      holder.release();
    }
    expect(database.pool.totalCount).toBeLessThanOrEqual(4);
    expect((await database.pool.query('select')).rowCount).toBe(1);
  };
  test('leave connections to others and do not wait for a locked row', doesNotWait, 30_000);

  const together = async (): Promise<void> => {
    const key = `slow ${keys++}`;
    const other = open({ pool: database.pool });
    expect(await consume([other], 4, key)).toBe(4);
    const limiter = open({ pool: database.pool });
    const holder = await database.pool.connect();
    await holder.query('begin');
    await holder.query('select from rate_limits where key like $1 for update', [`%${key}`]);
    const counted = limiter.consume(key);
    await holder.query('select pg_sleep(0.1)');
    await holder.query('rollback');
    holder.release();
    const { remaining } = await counted;
    expect(remaining).toBe(5);
    expect(await consume([other], 20, key)).toBe(5);
  };
  test('share a budget if a response takes 100 ms', together, 30_000);

  describe('through a failing network', () => {
    let proxy: FaultProxy;
    let databases: Database[];

    beforeEach(async () => {
      proxy = await faultProxy(Number(new URL(testDatabase.url).port));
      const url = proxy.through(testDatabase.url);
      const openOne = () => openDatabase({ url, applicationName: 'spec', maxConnections: 2 });
      databases = await Promise.all([openOne(), openOne()]);
    });

    afterEach(async () => {
      proxy.reset();
      proxy.resume();
      await Promise.all(databases.map((one) => one.close()));
      await proxy.close();
    });

    shareBudget(() => ({ proxy, open: (more) => databases.map(({ pool }) => open({ ...more, pool })) }));
  });
});

/** Two processes that count in one store behind a proxy. */
interface Behind {
  proxy: FaultProxy;
  open(options: Partial<RateLimiterOptions>): RateLimiter[];
}

/** Tests how two processes share one budget of 10 while the network to the store fails. */
function shareBudget(behind: () => Behind): void {
  const openTwo = async (more = {}): Promise<[RateLimiter, RateLimiter, key: string]> => {
    const [a, b] = behind().open({ processes: () => 2, patienceMs: 50, name: `spec-${Math.random()}`, ...more });
    await untilTogether(a!, b!);
    return [a!, b!, `shared ${keys++}`];
  };
  /** Sends `count` requests. Throws at the first one that is admitted beyond `most`. Returns how many were admitted. */
  const admit = async (limiters: RateLimiter[], count: number, key: string, most: number): Promise<number> => {
    let admitted = 0;
    for (let i = 0; i < count; i++) {
      const { allowed, remaining } = await limiters[i % limiters.length]!.consume(key);
      if (allowed) admitted++;
      expect(admitted).toBeLessThanOrEqual(most);
      expect(remaining).toBeLessThanOrEqual(10 - admitted);
    }
    return admitted;
  };

  test.each(['stall', 'cut'] as const)(
    'admit one share per process and return the rest of it during a network %s',
    async (how) => {
      const [a, b, key] = await openTwo();
      behind().proxy[how]();
      for (const limiter of [a, b]) {
        const left: (number | null)[] = [];
        for (let i = 0; i < 8; i++) {
          const { allowed, remaining, resetSeconds } = await limiter.consume(key);
          left.push(allowed ? remaining : null);
          expect(resetSeconds).toBeGreaterThan(50);
        }
        expect(left).toEqual([4, 3, 2, 1, 0, null, null, null]);
      }
    },
  );

  test.each(['stall', 'cut'] as const)(
    'divide the remaining budget after a network %s within a window',
    async (how) => {
      const [a, b, key] = await openTwo();
      expect(await admit([a, b], 4, key, 10)).toBe(4);
      behind().proxy[how]();
      // One process knows of 3 used requests, the other of 4. Half of the remaining 7 or 6 is 3, rounded down.
      expect(await admit([a, b], 20, key, 6)).toBe(6);
    },
  );

  test.each(['stall', 'cut'] as const)(
    'admit one more share in a process without a count of the window during a network %s',
    async (how) => {
      const [a, b, key] = await openTwo();
      expect(await admit([a], 12, key, 10)).toBe(10);
      behind().proxy[how]();
      expect(await admit([a], 5, key, 0)).toBe(0);
      expect(await admit([b], 12, key, 5)).toBe(5);
    },
  );

  test.each(['stall', 'cut'] as const)(
    'admit no second budget and report all requests to the store after repeated network %ss',
    async (how) => {
      const name = `spec-${Math.random()}`;
      const [a, b, key] = await openTwo({ name });
      // The budget, and one share of the process that reports second when the store responds again.
      const most = 10 + 5;
      let admitted = 0;
      for (let i = 0; i < 5; i++) {
        behind().proxy[how]();
        admitted += await admit([a, b], 3, key, most - admitted);
        behind().proxy.resume();
        await untilTogether(a, b);
        admitted += await admit([b, a], 3, key, most - admitted);
      }
      expect(admitted).toBeGreaterThanOrEqual(10);
      const [other] = await openTwo({ name });
      await untilTogether(a, other);
      expect(await admit([other], 1, key, 0)).toBe(0);
    },
  );
}

async function untilTogether(one: RateLimiter, other: RateLimiter): Promise<void> {
  const countTogether = async (): Promise<boolean> => {
    const key = `together ${keys++}`;
    return (await one.consume(key)).remaining - (await other.consume(key)).remaining === 1;
  };
  await eventually(countTogether, { what: 'both count in Redis' });
}

/** Opens two limiters that share counts. Until it is connected, a process counts alone. */
async function openBoth(url: string, first: Partial<RateLimiterOptions> = {}): Promise<[RateLimiter, RateLimiter]> {
  const name = `spec-${Math.random()}`;
  const [a, b] = [open({ redisUrl: url, name, ...first }), open({ redisUrl: url, name })];
  await untilTogether(a, b);
  return [a, b];
}

describeWithRedis('rate limiters of two processes on Redis', () => {
  test('share a budget', async () => {
    expect(await consume(await openBoth(redisUrl().url), 30)).toBe(10);
  });

  test('apply the limit of the key and give back requests', async () => {
    await holdsOther(await openBoth(redisUrl().url));
  });

  test('apply a changed limit within a window', async () => {
    await holdsChanging(await openBoth(redisUrl().url));
  });

  test('do not distrust Redis when the process itself was slow', async () => {
    const [busy, other] = await openBoth(redisUrl().url, { patienceMs: 300 });
    const counted = busy.consume('token');
    // Blocks the event loop for three times the patience.
    for (const until = performance.now() + 900; performance.now() < until;);
    expect((await counted).remaining).toBe(9);
    expect((await other.consume('token')).remaining).toBe(8);
    expect((await busy.consume('token')).remaining).toBe(7);
  });
});

describeWithPrivateRedis('rate limiters of two processes on Redis, through a failing network', () => {
  let redis: PrivateRedis;
  let proxy: FaultProxy;

  beforeAll(async () => {
    redis = await startPrivateRedis();
  });

  beforeEach(async () => {
    proxy = await faultProxy(redis.port);
  });

  afterEach(() => proxy.close());
  afterAll(() => redis.stop());

  const openTwo = (more: Partial<RateLimiterOptions>): RateLimiter[] =>
    [more, more].map((options) => open({ ...options, redisUrl: proxy.through(redis.url) }));
  shareBudget(() => ({ proxy, open: openTwo }));

  test('report their admitted requests again after Redis lost its data', async () => {
    const name = `spec-${Math.random()}`;
    // Patient, so that the store does not seem slow on a busy machine.
    const [a, b] = openTwo({ name, processes: () => 2, patienceMs: 5_000 });
    await untilTogether(a!, b!);
    const begunAt = performance.now();
    expect(await consume([a!, b!], 6)).toBe(6);
    await redis.kill();
    expect(await consume([a!, b!], 1)).toBe(1);
    await redis.start();
    // A process recognizes another window by its end.
    await eventually(() => performance.now() > begunAt + 200, { what: 'a window that begins now ends later' });
    await untilTogether(a!, b!);
    expect(await consume([a!, b!], 20)).toBe(3);
  });
});

describeWithPrivateRedis('rate limiters of two processes on a Redis cluster', () => {
  nightTest(
    'share a budget before and after a failover, and fail probes while the master of the counts is silent',
    async () => {
      const cluster = await startRedisCluster();
      try {
        const name = `spec-${Math.random()}`;
        const [one, other] = [open({ redisUrl: cluster.url, name }), open({ redisUrl: cluster.url, name })];
        await untilTogether(one, other);
        expect(await consume([one, other], 30)).toBe(10);
        await holdsOther([one, other]);
        const master = await cluster.masterOf(`{${name}}`);
        master.pause();
        const probes = await Promise.allSettled(Array.from({ length: 20 }, () => one.answers()));
        expect(new Set(probes.map(({ status }) => status))).toEqual(new Set(['rejected']));
        await master.kill();
        await untilTogether(one, other);
        expect(await one.answers()).toBe(true);
      } finally {
        await cluster.stop();
      }
    },
  );
});

describeWithPrivateRedis('rate limiter whose Redis stops', () => {
  const countsAgain = async (): Promise<void> => {
    const redis = await startPrivateRedis();
    try {
      const [limiter, other] = await openBoth(redis.url, usualPatience);
      redis.pause();
      expect((await limiter.consume('token')).remaining).toBe(9); // alone
      redis.resume();
      await untilTogether(limiter, other);
      // Redis also counts the request that it received while suspended.
      expect((await other.consume('token')).remaining).toBe(8);
    } finally {
      await redis.stop();
    }
  };
  test('uses Redis again once it responds', countsAgain, 30_000);

  const countsAlone = async (): Promise<void> => {
    const redis = await startPrivateRedis();
    try {
      // If each of the 30 requests waited, the test would time out.
      const [limiter, other] = await openBoth(redis.url, { patienceMs: 1_500 });
      redis.pause();
      expect(await consume([limiter], 30)).toBe(10);
      redis.resume();
      await untilTogether(limiter, other);
    } finally {
      await redis.stop();
    }
  };
  test('counts alone while Redis is silent, and waits for it only once', countsAlone, 30_000);
});
