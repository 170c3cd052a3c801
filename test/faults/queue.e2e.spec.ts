import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { describeWithPrivateRedis, eventually, type PrivateRedis, reportFigure, startPrivateRedis } from '#testing';
import { freshSeed, seededRandom, type Random } from '../support/random.ts';
import { startStandardSystem, type StandardSystem } from '../support/standard-system.ts';
import { isLong, upTo } from '../support/system.ts';
import { killWorker } from '../support/worker-kills.ts';

const LEASE_MS = 2_000;
const DELIVERIES = 5;
/** The last copies come when their Runs are long over, or under a later dispatch. */
const LATE_MS = isLong ? 10_000 : 1_500;
const LOOK_MS = 20;
const OUTAGE_MS = 60_000;
const FLUSHES = 20;

describeWithPrivateRedis('the queue does its worst under the standard load', () => {
  let redis: PrivateRedis;
  let system: StandardSystem;
  let random: Random;

  beforeAll(async () => {
    redis = await startPrivateRedis();
    system = await startStandardSystem({ queueUrl: redis.url, env: { LEASE_MS: String(LEASE_MS) } });
  }, 120_000);

  afterAll(async () => {
    redis.resume();
    await system?.stop();
    await redis.stop();
  });

  test(
    'every job delivered five times, shuffled and late: each Run is worked on once (F8)',
    async () => {
      random = seededRandom(freshSeed(), 'F8');
      const copies = copyJobs();
      const load = system.startLoad(random, isLong ? {} : { threads: 8, messages: 1, readers: 3 });
      // A Run taken back from it has a second dispatch, while jobs of the first are still to come.
      const call = await system.fakeProvider.hold('half said').reached;
      await killWorker(system, call.pid);
      await load.finished(120_000);
      const { jobs, dispatches } = await copies.end();
      await load.holds();
      const { rows } = await system.database.pool.query<{ claims: number; again: number }>(
        `select count(*)::integer as claims, count(*) filter (where (data->>'dispatch')::integer > 1)::integer as again
         from events where type = 'run.claimed'`,
      );
      const { claims, again } = rows[0]!;
      reportFigure(`F8: ${claims} claims of ${dispatches} dispatches, ${jobs} jobs more`);
      expect(again).toBeGreaterThan(0);
      expect(dispatches).toBeGreaterThanOrEqual(claims);
    },
    upTo(90_000),
  );

  /** Adds surplus jobs with separate ids for each dispatch of each Run. */
  function copyJobs(): { end(): Promise<{ jobs: number; dispatches: number }> } {
    const name = system.env['QUEUE_NAME']!;
    const connection = new Redis(redis.url, { maxRetriesPerRequest: null });
    const queue = new Queue(name, { connection, prefix: `{${name}}` });
    const seen = new Set<string>();
    let jobs = 0;
    let isOver = false;
    const copying = (async () => {
      for (; !isOver; await sleep(LOOK_MS)) {
        const { rows } = await system.database.pool.query<{ runId: string; threadId: string; dispatch: number }>(
          'select run_id as "runId", thread_id as "threadId", dispatch from run_work',
        );
        const fresh = rows.filter(({ runId, dispatch }) => !seen.has(`${runId}-${dispatch}`));
        for (const data of fresh) {
          seen.add(`${data.runId}-${data.dispatch}`);
          const copies = Array.from({ length: DELIVERIES - 1 }, () => ({
            name: 'run',
            data,
            opts: { jobId: `copy-${jobs++}`, delay: random.below(LATE_MS), removeOnComplete: true, removeOnFail: true },
          }));
          await queue.addBulk(copies);
        }
      }
    })();
    return {
      end: async () => {
        isOver = true;
        await copying;
        const isEmpty = async (): Promise<boolean> => {
          const left = await queue.getJobCounts('wait', 'delayed', 'active');
          if (Object.values(left).some((count) => count > 0)) throw new Error(JSON.stringify(left));
          return true;
        };
        await eventually(isEmpty, { what: 'every job is delivered', timeoutMs: LATE_MS + 10_000 });
        await queue.close();
        connection.disconnect();
        return { jobs, dispatches: seen.size };
      },
    };
  }

  /** Until the first claim after that moment, milliseconds. */
  async function goesOnAfter(at: number): Promise<number> {
    const find = async (): Promise<string | null> => {
      const { rows } = await system.database.pool.query<{ first: string | null }>(
        `select min(occurred_at) as first from events where type = 'run.claimed' and occurred_at > $1`,
        [new Date(at).toISOString()],
      );
      return rows[0]!.first;
    };
    return Date.parse(await eventually(find, { what: 'Runs are claimed' })) - at;
  }

  const outages = [
    { how: 'killed and back empty', begin: () => redis.kill(), end: () => redis.start() },
    { how: 'stopped, connections open and silent', begin: async () => redis.pause(), end: async () => redis.resume() },
  ];

  describe('long', () => {
    const long = isLong ? test : test.skip;

    long(
      'emptied again and again: claims go on within 5 s, nothing is lost (F4)',
      async () => {
        random = seededRandom(freshSeed(), 'F4');
        let flushes = 0;
        const load = system.startLoad(random, { keepOn: () => flushes < FLUSHES });
        const times: number[] = [];
        for (; flushes < FLUSHES; flushes++) {
          const held = system.fakeProvider.hold('half said');
          await held.reached.then(() => redis.flushAll());
          held.release();
          times.push(await goesOnAfter(Date.now()));
          await sleep(random.below(2_000));
        }
        await load.finished(120_000);
        await load.holds();
        reportFigure(`F4: claims went on after ${Math.max(...times)} ms at most`);
        expect(Math.max(...times)).toBeLessThan(5_000);
      },
      upTo(0),
    );

    long.each(outages)(
      '$how for 60 s: the API answers, streams go on, and Runs within 3 s when it is back (F5)',
      async ({ how, begin, end }) => {
        random = seededRandom(freshSeed(), `F5, ${how}`);
        let isUnavailable = true;
        const load = system.startLoad(random, { keepOn: () => isUnavailable });
        const held = system.fakeProvider.hold('all said');
        await held.reached;
        await begin();
        held.release();
        const until = Date.now() + OUTAGE_MS;
        await eventually(() => Date.now() > until, {
          what: 'Redis was away for long enough',
          timeoutMs: 2 * OUTAGE_MS,
        });
        await end();
        const tookMs = await goesOnAfter(Date.now());
        isUnavailable = false;
        await load.finished(120_000);
        await load.holds();
        reportFigure(`F5, Redis ${how}: Runs went on after ${tookMs} ms`);
        expect(tookMs).toBeLessThan(3_000);
      },
      upTo(0),
    );
  });
});
