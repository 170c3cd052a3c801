import {
  describeWithPrivateRedis,
  eventually,
  type PrivateRedis,
  reportFigure,
  reportLatency,
  startPrivateRedis,
} from '#testing';
import { allRunsCompleted, expectHealthy, expectStored } from '../support/checks.ts';
import {
  createAcknowledged,
  follow,
  inParallel,
  readLog,
  type Acknowledged,
  type Caller,
  type LogEntry,
} from '../support/client.ts';
import { isLong, startSystem, upTo, type System } from '../support/system.ts';
import { toldTimes } from '../support/times.ts';

const QUEUED = isLong ? 200 : 50;
const WARM = isLong ? 50 : 20;
const SLOTS = 4;
/** The bound for creates while Redis is unavailable. */
const CREATED_P99_MS = 50;
const FLUSHES = isLong ? 20 : 2;
/** How many longer Runs are added before each. */
const BESIDE = isLong ? 40 : 25;
/** How long Redis is away; at least until the Runs under way have ended. */
const OUTAGE_MS = isLong ? 60_000 : 0;
/** Of an answer that is still being written when Redis goes away, one every 50 ms. */
const PIECES = isLong ? 900 : 40;

describeWithPrivateRedis('Redis may lose everything', () => {
  let redis: PrivateRedis;
  let system: System;
  let caller: Caller;
  /** What the caller was told, and what readers of some of it saw. */
  let created: Acknowledged[];
  let readers: { threadId: string; seen: Promise<LogEntry[]> }[];

  beforeEach(async () => {
    [created, readers] = [[], []];
    redis = await startPrivateRedis();
    system = await startSystem({ queueUrl: redis.url, env: { WORKER_SLOTS: String(SLOTS) } });
    ({ caller } = await system.startApi());
  }, 120_000);

  afterEach(async () => {
    redis.resume();
    await system.stop();
    await redis.stop();
  });

  /** Creates a Thread; answers how long that took, milliseconds. */
  async function create(text: string, isRead = false): Promise<number> {
    const start = performance.now();
    const thread = await createAcknowledged(caller, text);
    const ms = performance.now() - start;
    created.push(thread);
    if (isRead) readers.push({ ...thread, seen: follow([caller], thread.threadId) });
    return ms;
  }

  /** One after the other: a machine that pauses once is slow for one of them. */
  const createQueued = (): Promise<number[]> => inParallel(QUEUED, 1, (i) => create(`timed ${i}`));

  async function countRuns(status: string): Promise<number> {
    const { rows } = await system.database.pool.query<{ runs: number }>(
      'select count(*)::integer as runs from run_summaries where status = $1',
      [status],
    );
    return rows[0]!.runs;
  }

  /** Whether, of so many that were queued, more were claimed than workers may have had in hand already. */
  const haveGoneOn = (queued: number) => async (): Promise<boolean> => (await countRuns('queued')) < queued - 2 * SLOTS;

  async function expectNothingLost(): Promise<void> {
    await allRunsCompleted(system.database, created.length, 60_000);
    await expectStored(system.database, created);
    for (const { threadId, seen } of readers) expect(await seen).toEqual(await readLog(caller, threadId));
    await expectHealthy(system.database);
  }

  test(
    'emptied under load: claims go on, and all Runs complete (F4)',
    async () => {
      await inParallel(QUEUED, 16, (i) => create(`queued ${i}`));
      await redis.flushAll();
      const worker = await system.startWorker();
      const wentOnMs: number[] = [];
      for (let flush = 0; flush < FLUSHES; flush++) {
        await inParallel(BESIDE, 8, (i) => create(`/pieces 10 /pause 20 beside ${i}`, i === 0));
        await redis.flushAll();
        const emptiedAt = performance.now();
        const waiting = await countRuns('queued');
        await eventually(haveGoneOn(waiting), { what: 'Runs that were in the queue are claimed' });
        wentOnMs.push(performance.now() - emptiedAt);
      }
      await expectNothingLost();
      await worker.kill();
      reportLatency(5_000, wentOnMs, 'claims went on after');
    },
    upTo(120_000),
  );

  const outages = {
    'killed and back empty': { begin: () => redis.kill(), end: () => redis.start() },
    'stopped, connections open and silent': { begin: async () => redis.pause(), end: async () => redis.resume() },
  };

  for (const [how, { begin, end }] of Object.entries(outages))
    test(
      `Redis ${how}: creates and streams continue, and Runs after its return (F5)`,
      async () => {
        const worker = await system.startWorker();
        await inParallel(WARM, 8, (i) => create(`warm ${i}`));
        const beside = await createQueued();
        await allRunsCompleted(system.database, created.length, 60_000);
        await inParallel(SLOTS, SLOTS, (i) => create(`/pieces ${PIECES} /pause 50 read ${i}`, true));
        const areUnderWay = async (): Promise<boolean> => (await countRuns('running')) === SLOTS;
        await eventually(areUnderWay, { what: 'the Runs that are read are under way' });

        await begin();
        const until = performance.now() + OUTAGE_MS;
        expect(await areUnderWay()).toBe(true);
        const unavailable = await createQueued();
        await Promise.all(readers.map(({ seen }) => seen));
        const isOver = (): boolean => performance.now() > until;
        await eventually(isOver, { what: 'Redis was away for long enough', timeoutMs: OUTAGE_MS + 1_000 });
        unavailable.push(...(await createQueued()));
        expect(await countRuns('queued')).toBe(unavailable.length);

        await end();
        const back = performance.now();
        await eventually(haveGoneOn(unavailable.length), { what: 'Runs continue' });
        const wentOnMs = performance.now() - back;
        await expectNothingLost();
        await worker.kill();
        reportFigure(
          `F5, Redis ${how}: creates ${toldTimes(unavailable)} while unavailable, ${toldTimes(beside)} before; Runs went on after ${Math.round(wentOnMs)} ms`,
        );
        reportLatency(CREATED_P99_MS, unavailable, `Redis ${how}: p99 of creates was`, 0.99);
        reportLatency(3_000, wentOnMs, `Redis ${how}: Runs went on after`);
      },
      upTo(120_000),
    );
});
