import { isDeepStrictEqual } from 'node:util';
import { AccessStore } from '#access';
import {
  describeWithPrivateRedis,
  eventually,
  faultProxy,
  startPrivateRedis,
  type FaultProxy,
  type PrivateRedis,
} from '#testing';
import { send, type Answer, type Caller } from '../support/client.ts';
import { startSystem, type System } from '../support/system.ts';

const LIMIT = 20;
const SHARE = LIMIT / 2;

describeWithPrivateRedis('two API processes, one rate limit, and a Redis that fails', () => {
  let redis: PrivateRedis;
  let proxy: FaultProxy;
  let system: System;
  let callers: Caller[];

  beforeAll(async () => {
    redis = await startPrivateRedis();
    proxy = await faultProxy(redis.port);
    const env = { RATE_LIMIT_PER_MINUTE: String(LIMIT), TRUSTED_PROXIES: '1' };
    system = await startSystem({ queueUrl: proxy.through(redis.url), env });
    callers = (await Promise.all([system.startApi(), system.startApi()])).map(({ caller }) => caller);
    await knowOneAnother();
  }, 120_000);

  afterEach(async () => {
    proxy.resume();
    await eventually(async () => (await Promise.all(callers.map(isReady))).every(Boolean), {
      what: 'both processes reach Redis',
    });
  });

  afterAll(async () => {
    await system.stop();
    await proxy.close();
    await redis.stop();
  });

  const isReady = async ({ baseUrl }: Caller): Promise<boolean> => {
    const response = await fetch(`${new URL(baseUrl).origin}/health/ready`);
    return ((await response.json()) as { status: string }).status === 'ready';
  };

  /** Waits until both processes have counted each other: both have renewed their rows after both were registered. */
  async function knowOneAnother(): Promise<void> {
    const { pool } = system.database;
    const read = async () => {
      const { rows } = await pool.query<{ count: number; renewed: string }>(
        `select count(*)::integer as count, min(expires_at)::text as renewed from rate_limits where key like 'api:%'`,
      );
      return rows[0]!;
    };
    await eventually(async () => (await read()).count === 2, { what: 'both processes are registered' });
    const { rows } = await pool.query<{ now: string }>(`select (clock_timestamp() + interval '10 s')::text as now`);
    await eventually(async () => (await read()).renewed > rows[0]!.now, { what: 'both processes have counted again' });
  }

  let people = 0;
  /** Returns a sender with a new person token. It throws at the first request that is admitted beyond `most`. */
  async function newSender(): Promise<(process: number, most: number) => Promise<Answer>> {
    const access = new AccessStore(system.database.pool);
    const { rows } = await system.database.pool.query<{ id: string }>('select owner_person_id as id from agents');
    const { token } = await access.mintToken({ kind: 'person', personId: rows[0]!.id, name: `caller ${people++}` });
    let admitted = 0;
    return async (process, most) => {
      const answer = await send({ ...callers[process]!, token }, 'GET', `/agents/${system.agentId}`);
      if (answer.status === 200) admitted++;
      expect([200, 429]).toContain(answer.status);
      expect(admitted).toBeLessThanOrEqual(most);
      return answer;
    };
  }

  /** Sends `count` requests to both processes in turn, one after another. Returns how many were admitted. */
  async function inTurn(request: (process: number, most: number) => Promise<Answer>, count: number, most: number) {
    const statuses: number[] = [];
    for (let i = 0; i < count; i++) statuses.push((await request(i % 2, most)).status);
    return statuses.filter((status) => status === 200).length;
  }

  /** Sends `count` concurrent requests to each process. Returns the answers of both. */
  const atOnce = (count: number, request: (process: number) => Promise<Answer>) =>
    Promise.all([0, 1].map((process) => Promise.all(Array.from({ length: count }, () => request(process)))));

  const left = ({ headers }: Answer): number => Number(headers.get('ratelimit-remaining'));

  function expectShare(answers: Answer[], admittedStatus: number): void {
    const admitted = answers.filter(({ status }) => status === admittedStatus);
    const refused = answers.filter(({ status }) => status === 429);
    expect([admitted.length, refused.length]).toEqual([SHARE, answers.length - SHARE]);
    expect(admitted.map(left).sort((a, b) => b - a)).toEqual(Array.from({ length: SHARE }, (_, i) => SHARE - 1 - i));
    for (const { headers } of answers) {
      expect(headers.get('ratelimit-limit')).toBe(String(LIMIT));
      expect(Number(headers.get('ratelimit-reset'))).toBeGreaterThanOrEqual(1);
      expect(Number(headers.get('ratelimit-reset'))).toBeLessThanOrEqual(60);
    }
    for (const { headers } of refused) {
      expect([headers.get('ratelimit-remaining'), headers.get('retry-after')]).toEqual([
        '0',
        headers.get('ratelimit-reset'),
      ]);
    }
  }

  test.each(['stall', 'cut'] as const)(
    'Redis %s: 40 requests to each process admit one budget together',
    async (how) => {
      const request = await newSender();
      proxy[how]();
      for (const answers of await atOnce(40, (process) => request(process, LIMIT))) expectShare(answers, 200);
    },
  );

  test.each(['stall', 'cut'] as const)(
    'Redis %s: 40 requests without a valid token to each process pass one budget together',
    async (how) => {
      const headers = { 'x-forwarded-for': `192.0.2.${how.length}` };
      proxy[how]();
      const wrong = (process: number) =>
        send({ ...callers[process]!, token: 'none' }, 'GET', `/agents/${system.agentId}`, undefined, headers);
      for (const answers of await atOnce(40, wrong)) expectShare(answers, 401);
    },
  );

  /** Returns a sender of whom both processes know that Redis has counted 8 requests. A process that was slow has counted alone. */
  const senderOf8 = () =>
    eventually(
      async () => {
        const request = await newSender();
        const remaining: number[] = [];
        for (let i = 0; i < 8; i++) remaining.push(left(await request(i % 2, LIMIT)));
        const counted = Array.from({ length: 8 }, (_, i) => LIMIT - 1 - i);
        return isDeepStrictEqual(remaining, counted) ? request : null;
      },
      { what: 'Redis has counted 8 requests' },
    );

  test.each(['stall', 'cut'] as const)(
    'Redis %s during a window: only the remaining budget is admitted',
    async (how) => {
      const request = await senderOf8();
      proxy[how]();
      expect(await inTurn(request, 60, LIMIT)).toBe(LIMIT - 8);
    },
  );

  test('a Redis that comes and goes gives no second budget', async () => {
    const request = await newSender();
    let admitted = 0;
    for (let i = 0; i < 6; i++) {
      proxy.stall();
      admitted += await inTurn(request, 6, LIMIT + SHARE);
      proxy.resume();
      admitted += await inTurn(request, 6, LIMIT + SHARE);
    }
    expect(admitted).toBeGreaterThanOrEqual(LIMIT);
  });

  test('a Redis that is killed and back empty gives no second budget', async () => {
    const request = await newSender();
    // A process that finds the new store slow decides by its share once more (docs/operations/logs-and-health.md).
    const most = LIMIT + SHARE;
    expect(await inTurn(request, 8, LIMIT)).toBe(8);
    await redis.kill();
    expect(await inTurn(request, 4, LIMIT)).toBe(4);
    await redis.start();
    await eventually(async () => (await Promise.all(callers.map(isReady))).every(Boolean), {
      what: 'both processes reach Redis',
    });
    expect(await inTurn(request, 60, most)).toBeGreaterThanOrEqual(LIMIT - 12);
  });
});
