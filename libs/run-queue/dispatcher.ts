import type { Pool, QueryConfig, QueryResultRow } from 'pg';
import type { RunJob } from '#event-store';
import { ADVISORY_LOCKS, LeaderLoop, namedStatement, type Logger } from '#platform';
import { inTurn, runsAhead, type FairShares, type ReadyRun } from './fair-order.ts';
import { lookAtLimits } from './limited-runs.ts';
import { monotonicNow } from './monotonic-now.ts';
import type { QueueControls } from './queue-controls.ts';
import { jobIdOf, QueueUnavailable, windowOf, type RunQueue } from './run-queue.ts';
import { SlotUsage, type SlotsInUse } from './slot-usage.ts';
import { metrics } from './metrics.ts';

const FIND_READY_RUNS = namedStatement(import.meta.dirname, 'find-ready-runs.sql');
const FIND_SLOTS_IN_USE = namedStatement(import.meta.dirname, 'find-slots-in-use.sql');
const WAKE_DELAYED_RUNS = namedStatement(import.meta.dirname, 'wake-delayed-runs.sql');

/** The interval of looks without work. */
const IDLE_MS = 1_000;
/** The interval of looks for some time after the last work. */
const BUSY_MS = 100;
const BUSY_FOR_MS = 2_000;
/** The interval while jobs wait in the queue: a Run that goes ahead of them is found within this time. */
const AHEAD_MS = 25;
/** The interval while there is a backlog and the queue drains. */
const DRAIN_MS = 5;
/**
 * The least pause after a look, as a multiple of the mean time of its statements. They take longer the more organizations have
 * ready Runs. With this pause they use a connection for at most about a quarter of the time.
 */
const REST = 3;
const LONGEST_REST_MS = 250;
/** For how many looks the jobs in the queue must last while there is a backlog. */
const LOOKS_AHEAD = 3;
const DRAIN_MEMORY_MS = 500;
/** How often delayed Runs are looked for, unless one is known to be due. */
const WAKE_EVERY_MS = 250;
/** How often the epoch marker, the pause by a tool and dead workers are checked. */
const CHECK_EVERY_MS = 1_000;
/** How often the slots in use are counted while there is a backlog; else at each check. */
const COUNT_SLOTS_EVERY_MS = 250;
/** A Run that is still ready after this time is enqueued again, because its job may be gone. If not, that adds nothing. */
const ENQUEUE_AGAIN_MS = 2_000;
/** A Run that still belongs ahead after this time is moved to the head again. */
const AHEAD_AGAIN_MS = 250;

/** The depth while no worker is known. */
const MIN_DEPTH = 8;

/** When a ready Run was last enqueued, and whether it went ahead of others. */
interface Enqueued {
  at: number;
  ahead: boolean;
}

export interface DispatcherOptions {
  databaseUrl: string;
  pool: Pool;
  queue: RunQueue;
  controls: QueueControls;
  logger: Logger;
  /** The interval of looks without work, milliseconds; default 1,000. */
  idleMs?: number | undefined;
}

/** The state of the queue when the look began. */
interface Found {
  /** Slots of all live workers. */
  slots: number;
  /** Jobs that no worker has taken yet. */
  waiting: number;
}

/**
 * Enqueues ready Runs, level-triggered over `run_work`: if a job is lost, the row is still there. One process leads at a time.
 * Two leaders do no harm, because a dispatch that is enqueued twice is one job.
 */
export class Dispatcher {
  private readonly loop: LeaderLoop;
  /** The enqueued Runs of the last look by job id. They may be out of date. */
  private enqueued = new Map<string, Enqueued>();
  private readonly usage = new SlotUsage();
  private countedAt = -Infinity;
  /** When all ready Runs, not only those that go ahead, were last read. */
  private lookedAt = -Infinity;
  /** The number of the last turn of each organization that the last look has seen. */
  private servedAt = new Map<string, number>();
  private served = 0;
  private wokeAt = -Infinity;
  /** When the next delayed Run is due, if that is within a second of the last look for them. */
  private nextDueAt = Infinity;
  private checkedAt = -Infinity;
  private limitsAt = -Infinity;
  private lookingAtLimits: Promise<void> | null = null;
  private busyAt = -Infinity;
  private epochSeen = false;
  private backlog = false;
  private drainPerMs = 0;
  private drainedAt = -Infinity;
  private lookMs = 0;
  /** The time of the statements whose cost grows with the organizations: in this look, and its mean. */
  private readMs = 0;
  private meanReadMs = 0;
  private restsUntil = -Infinity;
  private pauseMs = IDLE_MS;
  private failing = false;

  constructor(private readonly options: DispatcherOptions) {
    const { databaseUrl, logger } = options;
    this.loop = new LeaderLoop({
      databaseUrl,
      lockId: ADVISORY_LOCKS.dispatcher,
      name: 'dispatcher',
      tick: () => this.tick(),
      outageOf: (error) => (error instanceof QueueUnavailable ? 'the queue' : null),
      logger,
    });
  }

  get isLeader(): boolean {
    return this.loop.isLeader;
  }

  start(): void {
    this.loop.start();
  }

  /**
   * Looks immediately, unless looks are frequent anyway. Does nothing while looks fail, because during an outage of the queue
   * every commit would nudge.
   */
  nudge(): void {
    if (this.pauseMs > BUSY_MS && !this.failing) this.loop.nudge();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
    await this.lookingAtLimits;
  }

  /**
   * Looks once. If the look fails, no Run is enqueued, so queue time must stop. The outage is recorded in PostgreSQL for the next
   * leader.
   */
  private async tick(): Promise<number> {
    const { controls } = this.options;
    // A nudge during the rest.
    if (monotonicNow() < this.restsUntil) return this.restsUntil - monotonicNow();
    try {
      this.readMs = 0;
      this.pauseMs = await this.look();
      this.meanReadMs += (this.readMs - this.meanReadMs) / 4;
      this.restsUntil = monotonicNow() + this.restMs();
      await controls.noteAvailable();
      this.failing = false;
    } catch (error) {
      this.failing = true;
      await controls.noteUnavailable().catch(() => undefined);
      throw error;
    }
    return Math.max(Math.min(this.pauseMs, this.nextDueAt - monotonicNow()), this.restsUntil - monotonicNow(), 0);
  }

  /** Returns the rest after a look. It is capped, because one slow read, such as behind a lock, must not stop the dispatcher. */
  private restMs(): number {
    return Math.min(REST * this.meanReadMs, LONGEST_REST_MS);
  }

  /** Returns after how many milliseconds the next look is due. */
  private async look(): Promise<number> {
    const now = monotonicNow();
    const { controls, queue } = this.options;
    if (now - this.checkedAt >= CHECK_EVERY_MS) await this.check(now);
    const { paused, pausedByTool, unavailable, slots, limited } = await controls.read();
    // Also while paused, to detect an outage.
    const waiting = await queue.waitingCount();
    if (paused || pausedByTool) {
      this.enqueued.clear();
      this.nextDueAt = Infinity;
      return IDLE_MS;
    }
    if (now - this.wokeAt >= WAKE_EVERY_MS || now >= this.nextDueAt) await this.wakeDelayedRuns(now);
    // After an outage its end is recorded first, which gives ready Runs their queue time back.
    if (limited && !unavailable && now - this.limitsAt >= CHECK_EVERY_MS) this.lookAtLimits(now);
    const depth = this.depthOf(slots);
    if (now - this.countedAt >= (this.backlog ? COUNT_SLOTS_EVERY_MS : CHECK_EVERY_MS)) await this.countSlots(now);
    // The queue is full enough: looks only at the Runs that go ahead.
    if (this.backlog && waiting > 0.75 * depth && now - this.lookedAt < CHECK_EVERY_MS) {
      const rows = await this.read<ReadyRun>({ ...FIND_READY_RUNS, values: [mostAhead(slots)] });
      this.forgetGone(rows);
      await this.enqueueAhead(rows, { slots, waiting });
      return Math.min(2 * this.pauseMs, AHEAD_MS);
    }
    this.lookedAt = now;
    const enqueued = await this.enqueueReadyRuns({ slots, waiting }, depth - waiting);
    if (enqueued || waiting > 0 || limited) this.busyAt = now;
    if (this.backlog) return DRAIN_MS;
    if (waiting > 0) return AHEAD_MS;
    return now - this.busyAt < BUSY_FOR_MS ? BUSY_MS : (this.options.idleMs ?? IDLE_MS);
  }

  /**
   * Returns how many jobs to keep waiting. A new Run waits behind them: with half as many as slots, for half the time of a Run
   * (F13 of docs/reliability.md#faults). If Runs are so short that the queue would run dry between two looks, it is
   * more, at most the window.
   */
  private depthOf(slots: number): number {
    const least = Math.max(MIN_DEPTH, Math.ceil(slots / 2));
    const nextLookMs = this.lookMs + Math.max(DRAIN_MS, this.restMs());
    return Math.min(windowOf(slots), Math.max(least, Math.ceil(this.drainPerMs * LOOKS_AHEAD * nextLookMs)));
  }

  /** Updates the mean rate at which workers take jobs. It forgets within half a second. */
  private measureDrain(taken: number, startedAt: number): void {
    const now = monotonicNow();
    const elapsedMs = Math.max(1, now - this.drainedAt);
    this.lookMs += (now - startedAt - this.lookMs) / 4;
    this.drainPerMs += (taken / elapsedMs - this.drainPerMs) * (1 - Math.exp(-elapsedMs / DRAIN_MEMORY_MS));
    this.drainedAt = now;
  }

  /** Returns whether there was anything to enqueue. */
  private async enqueueReadyRuns(found: Found, room: number): Promise<boolean> {
    const startedAt = monotonicNow();
    const values = [2 * windowOf(found.slots) + found.slots];
    const rows = await this.read<ReadyRun>({ ...FIND_READY_RUNS, values });
    const now = monotonicNow();
    const ahead = await this.enqueueAhead(rows, found);
    const again = rows.filter((run) => {
      const last = this.enqueued.get(jobIdOf(run));
      return last !== undefined && now - last.at > ENQUEUE_AGAIN_MS;
    });
    const fresh = inTurn(rows, this.shares);
    const taken = fresh.slice(0, Math.max(0, room - ahead.length));
    const runs = [...again, ...taken];
    await this.send(runs, (jobs) => this.options.queue.enqueue(jobs));
    this.noteServed(rows, [...ahead, ...taken]);
    this.measureDrain(ahead.length + taken.length, startedAt);
    const known = new Map(rows.map((run) => [jobIdOf(run), this.enqueued.get(jobIdOf(run))]));
    for (const run of runs) known.set(jobIdOf(run), { at: now, ahead: false });
    this.enqueued = new Map([...known].filter((entry): entry is [string, Enqueued] => entry[1] !== undefined));
    this.backlog =
      taken.length < fresh.length || (ahead.length + taken.length > 0 && rows.some(({ maybeMore }) => maybeMore));
    return ahead.length + runs.length > 0;
  }

  /**
   * Enqueues the Runs that go ahead of those in the queue, and returns the new ones. Moves the earlier ones again, so that they
   * stay ahead of the new ones. If the window is full, one Run at a time goes ahead.
   */
  private async enqueueAhead(rows: readonly ReadyRun[], { slots, waiting }: Found): Promise<ReadyRun[]> {
    const { queue } = this.options;
    const now = monotonicNow();
    const isAhead = (run: ReadyRun): boolean => {
      const last = this.enqueued.get(jobIdOf(run));
      return last !== undefined && last.ahead && now - last.at <= AHEAD_AGAIN_MS;
    };
    const wanted = runsAhead(rows, this.shares);
    const earlier = wanted.filter(isAhead);
    const room = Math.min(mostAhead(slots) - earlier.length, windowOf(slots) - waiting);
    const added = wanted.filter((run) => !isAhead(run)).slice(0, Math.max(earlier.length === 0 ? 1 : 0, room));
    if (added.length === 0) return [];
    const first = wanted.filter((run) => earlier.includes(run) || added.includes(run));
    const areAlone = waiting <= earlier.length;
    await this.send(added, () => (areAlone ? queue.enqueue(added.map(jobOf)) : queue.enqueueAhead(first.map(jobOf))));
    for (const run of added) this.enqueued.set(jobIdOf(run), { at: now, ahead: true });
    return added;
  }

  /** Forgets Runs that went ahead and are no longer ready. One that waits for a limit is then enqueued again once admitted. */
  private forgetGone(rows: readonly ReadyRun[]): void {
    const ready = new Set(rows.map(jobIdOf));
    for (const [jobId, { ahead }] of this.enqueued) if (ahead && !ready.has(jobId)) this.enqueued.delete(jobId);
  }

  private async send(runs: readonly ReadyRun[], enqueue: (jobs: RunJob[]) => Promise<void>): Promise<void> {
    await enqueue(runs.map(jobOf)).catch((error: unknown) => {
      metrics.enqueues.inc({ path: 'dispatcher', outcome: 'failed' }, runs.length);
      throw error;
    });
    metrics.enqueues.inc({ path: 'dispatcher', outcome: 'sent' }, runs.length);
  }

  private get shares(): FairShares {
    return {
      usedBy: (organizationId) => this.usage.secondsOf(organizationId),
      runSeconds: this.usage.runSeconds,
      servedAt: (organizationId) => this.servedAt.get(organizationId) ?? 0,
      isEnqueued: (run) => this.enqueued.has(jobIdOf(run)),
    };
  }

  private async countSlots(now: number): Promise<void> {
    this.usage.add(monotonicNow(), await this.read<SlotsInUse>(FIND_SLOTS_IN_USE));
    this.countedAt = now;
  }

  /** Executes a statement whose cost grows with the organizations. */
  private async read<Row extends QueryResultRow>(statement: QueryConfig): Promise<Row[]> {
    const startedAt = monotonicNow();
    const { rows } = await this.options.pool.query<Row>(statement);
    this.readMs += monotonicNow() - startedAt;
    return rows;
  }

  private noteServed(seen: readonly ReadyRun[], taken: readonly ReadyRun[]): void {
    for (const { organizationId } of taken) this.servedAt.set(organizationId, ++this.served);
    const here = new Set(seen.map(({ organizationId }) => organizationId));
    for (const organizationId of this.servedAt.keys())
      if (!here.has(organizationId)) this.servedAt.delete(organizationId);
  }

  private async wakeDelayedRuns(now: number): Promise<void> {
    const { rows } = await this.options.pool.query<{ woken: number; nextInMs: number | null }>(WAKE_DELAYED_RUNS);
    const { woken, nextInMs } = rows[0]!;
    this.wokeAt = now;
    this.nextDueAt = nextInMs === null ? Infinity : monotonicNow() + nextInMs;
    if (woken > 0) this.busyAt = now;
  }

  /** Admits limited Runs that the fast path (LimitedRuns) missed. Not awaited: with many limits it takes longer than a look may. */
  private lookAtLimits(now: number): void {
    if (this.lookingAtLimits !== null) return;
    this.limitsAt = now;
    const { pool, controls } = this.options;
    this.lookingAtLimits = controls
      .slotsPerOrganization()
      .then((cap) => lookAtLimits(pool, cap))
      // They may have been enqueued before, when there was no room.
      .then((admitted) => admitted.forEach((job) => this.enqueued.delete(jobIdOf(job))))
      .catch((error: unknown) => this.options.logger.warn({ err: error }, 'checking run limits failed'))
      .finally(() => (this.lookingAtLimits = null));
  }

  /** Checks whether the queue has lost its data or a tool has paused it, and which workers are gone. */
  private async check(now: number): Promise<void> {
    const { pool, queue, controls, logger } = this.options;
    await pool.query(`delete from workers where seen_at < now() - interval '1 minute'`);
    const kept = await queue.ensureEpochMarker();
    if (!kept && this.epochSeen) logger.warn('queue lost its data; re-enqueueing ready runs');
    if (!kept) this.enqueued.clear();
    this.epochSeen = true;
    await controls.checkToolPause(queue);
    this.checkedAt = now;
  }
}

function jobOf({ runId, threadId, dispatch }: ReadyRun): RunJob {
  return { runId, threadId, dispatch };
}

/** Returns how many jobs may be ahead of the others at the same time. */
function mostAhead(slots: number): number {
  return Math.max(MIN_DEPTH, Math.ceil(slots / 2));
}
