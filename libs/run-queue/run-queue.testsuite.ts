import type { RunJob } from '#event-store';
import { eventually, faultProxy } from '#testing';
import { openRunQueue } from './open-run-queue.ts';
import { RunEnqueuer } from './run-enqueuer.ts';
import { HandlerUnavailable, windowOf } from './run-queue.ts';
import { deleteKeys, Installation } from './run-queue.testing.ts';

/** A place where the queue keeps its jobs. */
export interface Backend {
  open(): Promise<Installation>;
  loseData(installation: Installation): Promise<void>;
  close?(installation: Installation): Promise<void>;
  /** Whether one proxy can be placed in front of it. Otherwise a separate spec tests lost connections. */
  hasOnePort?: boolean;
}

/** Defines the tests that every backend of the queue must pass. */
export function describeRunQueue(backend: Backend): void {
  let on: Installation;

  beforeEach(async () => {
    on = await backend.open();
  });

  afterEach(async () => {
    await on.close();
    await backend.close?.(on);
  });

  const waiting = (count: number): Promise<unknown> =>
    eventually(async () => (await on.queue.waitingCount()) === count, { what: `${count} jobs wait` });
  const idle = async (): Promise<void> => {
    await waiting(0);
  };
  const jobOf = (runId: string): RunJob => ({ runId, threadId: 'thread', dispatch: 1 });
  const manyJobs = (count: number): RunJob[] => Array.from({ length: count }, (_, i) => jobOf(`run${i}`));

  describe('the queue', () => {
    it.each([1, 7, 8, 100])('delivers each of %d jobs once', async (count) => {
      const delivered: RunJob[] = [];
      on.queue.consume(async (job) => void delivered.push(job), 4);
      await on.queue.enqueue(manyJobs(count));
      await eventually(() => delivered.length >= count, { what: 'all are delivered' });
      await idle();
      expect(delivered).toHaveLength(count);
      expect(new Set(delivered.map(({ runId }) => runId)).size).toBe(count);
      expect(delivered).toContainEqual(jobOf('run0'));
    });

    it.each([1, 8])('holds one job per dispatch if %d jobs are enqueued repeatedly', async (count) => {
      for (let i = 0; i < 3; i++) await on.queue.enqueue(manyJobs(count));
      expect(await on.queue.waitingCount()).toBe(count);
      await on.queue.enqueue([{ ...jobOf('run0'), dispatch: 2 }]);
      expect(await on.queue.waitingCount()).toBe(count + 1);
    });

    it('delivers a job again each time it is enqueued after it was handled', async () => {
      let deliveries = 0;
      on.queue.consume(async () => void deliveries++, 1);
      for (let i = 1; i <= 5; i++) {
        const again = async (): Promise<boolean> => {
          await on.queue.enqueue([jobOf('run')]);
          return deliveries >= i;
        };
        await eventually(again, { what: `it is delivered the ${i}th time` });
      }
    });

    it('delivers jobs enqueued ahead first and in their order, even if the queue held them already', async () => {
      for (const runId of ['a', 'b', 'c', 'd']) await on.queue.enqueue([jobOf(runId)]);
      await on.queue.enqueueAhead(['x', 'c'].map(jobOf));
      await on.queue.enqueueAhead(['y', 'x', 'c'].map(jobOf));
      expect(await on.queue.waitingCount()).toBe(6);
      const delivered: string[] = [];
      on.queue.consume(async ({ runId }) => void delivered.push(runId), 1);
      await eventually(() => delivered.length === 6, { what: 'all are delivered' });
      expect(delivered).toEqual(['y', 'x', 'c', 'a', 'b', 'd']);
    });

    it('leaves a taken job to its worker when the job is enqueued ahead', async () => {
      const delivered: string[] = [];
      let release = (): void => undefined;
      const released = new Promise<void>((resolve) => (release = resolve));
      on.queue.consume(async ({ runId }) => {
        delivered.push(runId);
        await released;
      }, 1);
      await on.queue.enqueue([jobOf('a')]);
      await eventually(() => delivered.length === 1, { what: 'it is taken' });
      await on.queue.enqueueAhead(['b', 'a'].map(jobOf));
      release();
      await eventually(() => delivered.length === 2, { what: 'the other is delivered' });
      await idle();
      expect(delivered).toEqual(['a', 'b']);
    });

    it('forgets a job whose handler threw', async () => {
      const handler = jest
        .fn<Promise<void>, [RunJob]>()
        .mockRejectedValueOnce(new Error('the database is unavailable'));
      handler.mockResolvedValue();
      on.queue.consume(handler, 1);
      await on.queue.enqueue([jobOf('run')]);
      const again = async (): Promise<boolean> => {
        await on.queue.enqueue([jobOf('run')]);
        return handler.mock.calls.length > 1;
      };
      await eventually(again, { what: 'it is delivered again' });
    });

    it('gives the jobs of an unavailable handler to other workers until it has recovered', async () => {
      let recover = (): void => undefined;
      const recovered = new Promise<void>((resolve) => (recover = resolve));
      const tried: string[] = [];
      on.queue.consume(async ({ runId }) => {
        tried.push(runId);
        if (tried.length === 1) throw new HandlerUnavailable(recovered, new Error('the database is unavailable'));
      }, 1);
      await on.queue.enqueue([jobOf('a')]);
      await eventually(async () => tried.length === 1 && (await on.queue.waitingCount()) === 1, {
        what: 'the job waits again',
      });
      const elsewhere: string[] = [];
      const other = on.queue.consume(async ({ runId }) => void elsewhere.push(runId), 1);
      await on.queue.enqueue([jobOf('b')]);
      await eventually(() => elsewhere.length === 2, { what: 'the other worker has both' });
      await other.close();
      recover();
      await on.queue.enqueue([jobOf('c')]);
      await eventually(() => tried.length === 2, { what: 'the first worker takes jobs again' });
      expect([tried, elsewhere.toSorted()]).toEqual([
        ['a', 'c'],
        ['a', 'b'],
      ]);
    });

    it('closes although a handler becomes unavailable meanwhile', async () => {
      let fail: ((error: Error) => void) | undefined;
      const consumer = on.queue.consume(() => new Promise((_, reject) => (fail = reject)), 1);
      await on.queue.enqueue([jobOf('a')]);
      await eventually(() => fail !== undefined, { what: 'the job is taken' });
      const closing = consumer.close();
      fail?.(new HandlerUnavailable(new Promise(() => undefined), new Error('the database is unavailable')));
      await closing;
      await waiting(1);
    });

    it('stops in two stages: takes no new job, then waits for running handlers', async () => {
      const started: string[] = [];
      let finish = (): void => undefined;
      const consumer = on.queue.consume(async ({ runId }) => {
        started.push(runId);
        if (runId === 'long') await new Promise<void>((resolve) => (finish = resolve));
      }, 2);
      await on.queue.enqueue([jobOf('long')]);
      await eventually(() => started.length === 1, { what: 'the long one has started' });

      await consumer.stopTaking();
      const elsewhere: string[] = [];
      on.queue.consume(async ({ runId }) => void elsewhere.push(runId), 1);
      await on.queue.enqueue([jobOf('a')]);
      await on.queue.enqueue([jobOf('b')]);
      await eventually(() => elsewhere.length === 2, { what: 'another worker has the new ones' });
      let closed = false;
      const closing = consumer.close().then(() => (closed = true));
      expect(closed).toBe(false);
      finish();
      await closing;
      expect(started).toEqual(['long']);
    });

    const givesAnother = async (): Promise<void> => {
      const proxy = await faultProxy(Number(new URL(on.queueUrl).port));
      const lost = await openRunQueue({ url: proxy.through(on.queueUrl), name: on.name, logger: on.logger });
      let taken = false;
      let release = (): void => undefined;
      const released = new Promise<void>((resolve) => (release = resolve));
      lost.consume(async () => {
        taken = true;
        await released;
      }, 1);
      try {
        await on.queue.enqueue([jobOf('run')]);
        await eventually(() => taken, { what: 'it is taken' });
        proxy.stall();
        let delivered = false;
        const other = on.queue.consume(async () => void (delivered = true), 1);
        await eventually(() => delivered, { what: 'it is delivered to the other' });
        await other.close();
      } finally {
        proxy.resume();
        release();
        await lost.close();
        await proxy.close();
      }
    };
    if (backend.hasOnePort !== false) it('delivers the job of a lost worker to another worker', givesAnother, 30_000);

    it('shares the jobs among all workers', async () => {
      const takers = new Set<string>();
      let release = (): void => undefined;
      const released = new Promise<void>((resolve) => (release = resolve));
      for (const taker of ['first', 'second']) {
        on.queue.consume(async () => {
          takers.add(taker);
          await released;
        }, 2);
      }
      await on.queue.enqueue(manyJobs(8));
      await eventually(() => takers.size === 2, { what: 'both workers have one' });
      release();
      await idle();
    });
  });

  describe('the fast path', () => {
    /** Enqueues with a stopped clock, so that no job is dropped as late on a busy machine. */
    const enqueueAll = async (runs: readonly RunJob[]): Promise<void> => {
      const { queue, controls, logger } = on;
      const enqueuer = new RunEnqueuer({ queue, controls, logger, now: () => 0 });
      runs.forEach((run) => enqueuer.enqueueSoon(run));
      await eventually(() => enqueuer.inFlight === 0, { what: 'the jobs are enqueued' });
    };

    it('enqueues up to the window of two jobs a slot, and leaves the rest to the dispatcher', async () => {
      await on.registerWorker('a', 5);
      await on.registerWorker('b', 5);
      const runs = await on.addReadyRuns('org', 40);
      await on.letTimePass('-1 hour'); // Otherwise the first Run may be a backlog before the last is added.
      await enqueueAll(runs);
      expect(await on.queue.waitingCount()).toBe(windowOf(10));

      const consumed = on.consumeRuns(4);
      on.startDispatcher();
      await on.waitFor(consumed, 40);
      expect(new Set(consumed).size).toBe(40);
    });

    it('leaves new Runs to the dispatcher during a backlog', async () => {
      const runs = await on.addReadyRuns('org', 30);
      await on.letTimePass('1 hour');
      await enqueueAll(runs);
      expect(await on.queue.waitingCount()).toBe(windowOf(0) / 8);
    });
  });

  describe('the dispatcher', () => {
    it('takes turns among organizations and never fills the queue beyond the window', async () => {
      await on.registerWorker('a', 8);
      for (const [organization, count] of [
        ['A', 60],
        ['B', 30],
        ['C', 10],
      ] as const)
        await on.addReadyRuns(organization, count);
      on.startDispatcher();
      await eventually(async () => (await on.queue.waitingCount()) > 0, { what: 'the queue is filled' });
      await on.lookedOnceMore();
      const consumed: string[] = [];
      let mostWaiting = await on.queue.waitingCount();
      on.queue.consume(async (job) => {
        mostWaiting = Math.max(mostWaiting, await on.queue.waitingCount());
        if (await on.claim(job)) consumed.push(job.runId);
      }, 1);
      await on.waitFor(consumed, 100, 20_000);
      expect(mostWaiting).toBeLessThanOrEqual(windowOf(8));
      const count = (prefix: string): number => consumed.slice(0, 24).filter((run) => run.startsWith(prefix)).length;
      for (const organization of ['A', 'B', 'C']) expect(count(organization)).toBeGreaterThanOrEqual(6);
      expect(new Set(consumed).size).toBe(100);
      // The Runs of one organization are in order of age, except a few that were enqueued at the same time.
      const ofA = consumed.filter((run) => run.startsWith('A'));
      const sorted = [...ofA].sort();
      const moved = ofA.map((run, i) => Math.abs(sorted.indexOf(run) - i));
      expect(Math.max(...moved)).toBeLessThan(8);
    });

    it('gives an organization without a slot the next one, ahead of the jobs in the queue', async () => {
      await on.registerWorker('a', 8);
      await on.addClaimedRuns('A', 8);
      const backlog = await on.addReadyRuns('A', 60);
      // Fills the window with jobs of one organization, as the fast path does before a backlog is known.
      await on.queue.enqueue(backlog.slice(0, windowOf(8)));
      on.startDispatcher();
      await on.lookedOnceMore();
      // The first of these already waits in the queue, behind all others.
      const [late, later] = [await on.addReadyRuns('B', 2), await on.addReadyRuns('C', 2)];
      await on.queue.enqueue([late[0]!]);
      await on.lookedOnceMore();
      await on.lookedOnceMore();
      expect(await on.queue.waitingCount()).toBeLessThanOrEqual(windowOf(8) + 2);
      const consumed: string[] = [];
      const consumer = on.queue.consume(async (job) => {
        if (await on.claim(job)) consumed.push(job.runId);
        // Leaves the dispatcher time to find the next one.
        await on.lookedOnceMore();
      }, 1);
      await on.waitFor(consumed, 4);
      // Before the dispatcher stops, because the handler waits for its looks.
      await consumer.close();
      // B and C hold no slot, because a claimed Run ends immediately here.
      expect(consumed.slice(0, 4).toSorted()).toEqual([...late, ...later].map(({ runId }) => runId).toSorted());
      expect(consumed[0]).toBe(late[0]!.runId);
    });

    it('makes delayed Runs ready when they are due, with their whole queue time before them', async () => {
      const due = await on.addDelayedRun(300);
      const behindAnother = await on.addDelayedRun(null);
      const seen: unknown[] = [];
      on.queue.consume(async ({ runId }) => {
        const { rows } = await on.pool.query<object>(
          `select run_id, state, due_at > now() + interval '9 minutes' as "wholeTime" from run_work where run_id = $1`,
          [runId],
        );
        if (await on.claim(jobOf(runId))) seen.push(...rows);
      }, 1);
      on.startDispatcher();
      await eventually(() => seen.length > 0, { what: 'it is consumed' });
      await on.lookedOnceMore();
      expect(seen).toEqual([{ run_id: due.runId, state: 'ready', wholeTime: true }]);
      const { rows } = await on.pool.query('select run_id, state from run_work');
      expect(rows).toEqual([{ run_id: behindAnother.runId, state: 'delayed' }]);
    });

    it('enqueues a ready Run again after its job was lost', async () => {
      const [run] = await on.addReadyRuns('org', 1);
      const refused = { times: 0 };
      on.queue.consume(async (job) => {
        if (++refused.times > 1) await on.claim(job);
      }, 1);
      on.startDispatcher();
      const gone = async (): Promise<boolean> => !(await on.claim({ ...run!, dispatch: 99 })) && refused.times > 1;
      await eventually(gone, { what: 'it is delivered again' });
    });

    it('enqueues all ready Runs again after the queue has lost its data, and workers continue', async () => {
      const consumed: string[] = [];
      let open = false;
      on.queue.consume(async (job) => {
        if (open && (await on.claim(job))) consumed.push(job.runId);
      }, 4);
      on.startDispatcher();
      await on.addReadyRuns('org', 100);
      await on.checkedOnceMore();
      expect(await on.queue.ensureEpochMarker()).toBe(true);
      await backend.loseData(on);
      open = true;
      await on.waitFor(consumed, 100);
      await eventually(() => on.log.includes('lost its data'), { what: 'the loss is logged' });
      expect(await on.queue.ensureEpochMarker()).toBe(true);
    });

    it('elects another leader after the connection of the leader is cut', async () => {
      const dispatchers = [on.startDispatcher(), on.startDispatcher()];
      const leaders = (): number => dispatchers.filter(({ isLeader }) => isLeader).length;
      await eventually(() => leaders() === 1, { what: 'one leads' });
      const consumed = on.consumeRuns(2);
      await on.addReadyRuns('org', 3);
      await on.waitFor(consumed, 3);

      const { rows } = await on.pool.query<{ pid: number }>(
        `select pid from pg_locks where locktype = 'advisory' and granted
         and database = (select oid from pg_database where datname = current_database())
         and pid in (select pid from pg_stat_activity where application_name = 'spool dispatcher')`,
      );
      expect(rows).toHaveLength(1);
      await on.pool.query('select pg_terminate_backend($1)', [rows[0]!.pid]);
      await eventually(() => on.log.includes('stopped leading'), { what: 'the leader has noticed' });
      await on.addReadyRuns('org', 3);
      await on.waitFor(consumed, 4);
      await eventually(() => leaders() === 1, { what: 'one leads' });
    });

    it('deletes dead workers and keeps live ones', async () => {
      const worker = await on.registerWorker('a', 3);
      on.startDispatcher();
      await on.checkedOnceMore();
      expect((await on.controls.read()).slots).toBe(3);
      await worker.close();
      await eventually(async () => (await on.controls.read()).slots === 0, { what: 'the worker has signed off' });
    });
  });

  it('detects and ends the pause of a BullMQ tool; meanwhile no job is taken and queue time stops', async () => {
    const consumed = on.consumeRuns(2);
    on.startDispatcher();
    await on.checkedOnceMore();
    await on.queue.shown.pause();
    await eventually(async () => (await on.controls.read()).pausedByTool, { what: 'the pause is known' });
    expect([await on.controls.isHeld(), await on.controls.isPaused()]).toEqual([true, false]);
    const [run] = await on.addReadyRuns('org', 1);
    on.enqueuer.enqueueSoon(run!);
    await on.lookedOnceMore();
    await on.letTimePass('8 minutes');
    expect(consumed).toEqual([]);
    // The limit is 10 minutes, and the pause has not ended yet.
    expect(await on.minutesLeft(run!.runId)).toBe(2);

    // The tool resumes the queue itself.
    await on.queue.shown.resume();
    await on.waitFor(consumed, 1);
    await eventually(async () => !(await on.controls.isHeld()), { what: 'its end is known' });

    await on.queue.shown.pause();
    await eventually(() => on.controls.isHeld(), { what: 'the second pause is known' });
    await on.addReadyRuns('org', 1);
    await on.queue.liftToolPause();
    await on.waitFor(consumed, 2);
    await eventually(async () => !(await on.controls.isHeld()), { what: 'its end is known' });
  });

  it('enqueues no Run, wakes no delayed Run and stops queue time during a pause', async () => {
    const consumed = on.consumeRuns(2);
    const dispatcher = on.startDispatcher();
    await on.controls.pauseQueue();
    await on.controls.pauseQueue();
    await eventually(() => on.controls.isPaused(), { what: 'the pause is known' });
    const [run] = await on.addReadyRuns('org', 1);
    await on.addDelayedRun(0);
    on.enqueuer.enqueueSoon(run!);
    await on.lookedOnceMore();
    await eventually(() => on.enqueuer.inFlight === 0, { what: 'the fast path has finished' });
    expect(await on.queue.waitingCount()).toBe(0);
    expect(consumed).toEqual([]);

    await dispatcher.stop();
    const read = `select state, extract(epoch from due_at - now())::float8 as "leftS" from run_work order by state desc`;
    await on.pool.query(`update queue_controls set paused_at = paused_at - interval '1 hour'`);
    await on.pool.query(`update run_work set since = since - interval '30 minutes' where state = 'ready'`);
    await on.controls.resumeQueue();
    const { rows } = await on.pool.query<{ state: string; leftS: number }>(read);
    expect(rows.map(({ state }) => state)).toEqual(['ready', 'delayed']);
    // 10 minutes of queue time, and the half hour of the pause in which it was ready.
    expect(rows[0]!.leftS).toBeGreaterThan(39 * 60);
    expect(rows[0]!.leftS).toBeLessThan(41 * 60);
    on.startDispatcher();
    await on.waitFor(consumed, 2);
  });
}

/** The backend on Redis. The addresses are functions, because the servers start before the tests. */
export const onRedis = (databaseUrl: () => string, redisUrl: () => string): Backend => ({
  open: () => Installation.open(databaseUrl(), redisUrl()),
  loseData: deleteKeys,
  close: deleteKeys,
});
