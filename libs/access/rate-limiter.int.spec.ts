import { openDatabase, createLogger, type Database } from '#platform';
import {
  createTestDatabase,
  describeWithPrivateRedis,
  describeWithRedis,
  eventually,
  expectWithin,
  redisUrl,
  startPrivateRedis,
  timedTest,
  type TestDatabase,
} from '#testing';
import { RateLimiter, type RateLimiterOptions } from './rate-limiter.ts';

// Real: PostgreSQL, Redis.

const logger = createLogger('silent', 'rate-limiter spec');
const opened: RateLimiter[] = [];
/** For keys that nothing else has counted. */
let keys = 0;
/** Where that is what is shown, and not what a machine that is slow makes of it. */
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

describe('a process that counts alone', () => {
  test('allows so many in a window, tells how many are left, and when it ends', async () => {
    const limiter = open({});
    expect(await limiter.consume('token')).toEqual({ allowed: true, limit: 10, remaining: 9, resetSeconds: 60 });
    expect(await consume([limiter], 20)).toBe(9);
    const refused = await limiter.consume('token');
    expect(refused).toMatchObject({ allowed: false, limit: 10, remaining: 0 });
    expect(refused.resetSeconds).toBeGreaterThan(50);
    expect((await limiter.consume('another')).allowed).toBe(true);
  });

  test('takes another limit for a kind of keys, and takes back what shall not count', async () => {
    await holdsOther([open({})]);
  });
});

/** Of keys that may be consumed three times. */
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

describe('two processes on PostgreSQL', () => {
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

  test('count together, one after another and at once', async () => {
    const limiters = [open({ pool: database.pool }), open({ pool: database.pool })];
    expect(await consume(limiters, 30)).toBe(10);
    const results = await Promise.all(Array.from({ length: 30 }, (_, i) => limiters[i % 2]!.consume('at once')));
    expect(results.filter(({ allowed }) => allowed)).toHaveLength(10);
  });

  test('hold another limit for a kind of keys, and take back what shall not count', async () => {
    await holdsOther([open({ pool: database.pool }), open({ pool: database.pool })]);
  });

  test('are told when the window ends by its clock', async () => {
    const { resetSeconds } = await open({ pool: database.pool }).consume('clock');
    expect(resetSeconds).toBe(60);
    await database.pool.query(`update rate_limits set expires_at = now() - interval '1 s' where key like '%clock'`);
    expect(await open({ pool: database.pool }).consume('clock')).toMatchObject({ remaining: 9, resetSeconds: 60 });
  });

  test('let a key through again when the window has ended, though their clock was put back meanwhile', async () => {
    const limiter = open({ pool: database.pool });
    const nearEnd = `update rate_limits set expires_at = clock_timestamp() + interval '300 ms' where key like '%set back'`;
    expect(await consume([limiter], 9, 'set back')).toBe(9);
    await database.pool.query(nearEnd);
    await limiter.consume('set back'); // the last of this window
    const setBack = jest.spyOn(Date, 'now').mockReturnValue(Date.now() - 3_600_000);
    try {
      await eventually(async () => (await limiter.consume('set back')).allowed, { what: 'the next window begins' });
    } finally {
      setBack.mockRestore();
    }
  });

  const nobodyWaits = async (): Promise<void> => {
    const key = `hot ${keys++}`;
    await open({ pool: database.pool }).consume(key);
    const limiter = open({ pool: database.pool, ...usualPatience });
    const holder = await database.pool.connect();
    let tookMs: number;
    try {
      await holder.query('begin');
      await holder.query('select from rate_limits where key like $1 for update', [`%${key}`]);
      const before = performance.now();
      const results = await Promise.all(Array.from({ length: 20 }, () => limiter.consume(key)));
      tookMs = performance.now() - before;
      expect(results.filter(({ allowed }) => allowed)).toHaveLength(10);
    } finally {
      await holder.query('rollback');
      holder.release();
    }
    expect(database.pool.totalCount).toBeLessThanOrEqual(4);
    expect((await database.pool.query('select')).rowCount).toBe(1);
    expectWithin(2_000, tookMs, 'all were answered after');
  };
  timedTest('let one another have connections, and nobody waits for a row that is held', nobodyWaits, 30_000);

  const together = async (): Promise<void> => {
    const key = `slow ${keys++}`;
    const other = open({ pool: database.pool });
    expect(await consume([other], 4, key)).toBe(4);
    const limiter = open({ pool: database.pool, ...usualPatience });
    const holder = await database.pool.connect();
    await holder.query('begin');
    await holder.query('select from rate_limits where key like $1 for update', [`%${key}`]);
    const before = performance.now();
    const counted = limiter.consume(key);
    await holder.query('select pg_sleep(0.1)');
    await holder.query('rollback');
    holder.release();
    const { remaining } = await counted;
    // First: what a machine makes slower than its patience is rightly counted alone.
    expectWithin(250, performance.now() - before, 'it was answered after');
    expect(remaining).toBe(5);
    expect(await consume([other], 20, key)).toBe(5);
  };
  timedTest('count together where one answer takes 100 ms', together, 30_000);

  test('count alone while it is away', async () => {
    const gone = await openDatabase({ url: testDatabase.url, applicationName: 'spec', maxConnections: 1 });
    await gone.close();
    expect(await consume([open({ pool: gone.pool })], 30, 'other')).toBe(10);
  });
});

async function untilTogether(one: RateLimiter, other: RateLimiter): Promise<void> {
  const countTogether = async (): Promise<boolean> => {
    const key = `together ${keys++}`;
    return (await one.consume(key)).remaining - (await other.consume(key)).remaining === 1;
  };
  await eventually(countTogether, { what: 'both count in Redis' });
}

/** Until its connection is made, a process counts alone. */
async function openBoth(url: string, first: Partial<RateLimiterOptions> = {}): Promise<[RateLimiter, RateLimiter]> {
  const name = `spec-${Math.random()}`;
  const [a, b] = [open({ redisUrl: url, name, ...first }), open({ redisUrl: url, name })];
  await untilTogether(a, b);
  return [a, b];
}

describeWithRedis('two processes on Redis', () => {
  test('count together', async () => {
    expect(await consume(await openBoth(redisUrl().url), 30)).toBe(10);
  });

  test('hold another limit for a kind of keys, and take back what shall not count', async () => {
    await holdsOther(await openBoth(redisUrl().url));
  });

  test('do not take it for slow where they are slow themselves', async () => {
    const [busy, other] = await openBoth(redisUrl().url, { patienceMs: 300 });
    const counted = busy.consume('token');
    // Three times its patience: what Redis may take to answer.
    for (const until = performance.now() + 900; performance.now() < until;);
    expect((await counted).remaining).toBe(9);
    expect((await other.consume('token')).remaining).toBe(8);
    expect((await busy.consume('token')).remaining).toBe(7);
  });
});

describeWithPrivateRedis('a process whose Redis stops', () => {
  const countsAgain = async (): Promise<void> => {
    const redis = await startPrivateRedis();
    try {
      const [limiter, other] = await openBoth(redis.url, usualPatience);
      redis.pause();
      expect((await limiter.consume('token')).remaining).toBe(9); // alone
      const before = performance.now();
      redis.resume();
      await untilTogether(limiter, other);
      const tookMs = performance.now() - before;
      // What it was asked counts there too.
      expect((await other.consume('token')).remaining).toBe(8);
      expectWithin(500, tookMs, 'it counted in it again after');
    } finally {
      await redis.stop();
    }
  };
  timedTest('counts in it again as soon as it has answered', countsAgain, 30_000);

  const countsAlone = async (): Promise<void> => {
    const redis = await startPrivateRedis();
    try {
      const [limiter, other] = await openBoth(redis.url, usualPatience);
      redis.pause();
      const before = performance.now();
      expect(await consume([limiter], 30)).toBe(10);
      const tookMs = performance.now() - before;
      redis.resume();
      await untilTogether(limiter, other);
      // Each alone would wait for 30 ms.
      expectWithin(400, tookMs, '30 were counted in');
    } finally {
      await redis.stop();
    }
  };
  timedTest('counts alone while it is silent, and waits for it once and not each time', countsAlone, 30_000);
});
