import type { Pool } from 'pg';
import type { RunOffer } from '#event-store';
import { LeaderLoop, metrics, namedStatement, type Logger } from '#platform';
import { lookAtLimits } from './limited-runs.ts';
import { monotonicNow } from './monotonic-now.ts';
import type { QueueControls } from './queue-controls.ts';
import { jobIdOf, QueueAway, windowOf, type RunQueue } from './run-queue.ts';

const FIND_READY_RUNS = namedStatement(import.meta.dirname, 'find-ready-runs.sql');
const WAKE_DELAYED_RUNS = namedStatement(import.meta.dirname, 'wake-delayed-runs.sql');

/** The same number in every process; any that nobody else uses. */
const DISPATCHER_LOCK = 7_215_081;

const IDLE_MS = 1_000;
/** While there has been work lately. */
const BUSY_MS = 100;
const BUSY_FOR_MS = 2_000;
/** While there is a backlog and the queue drains. */
const DRAIN_MS = 5;
/** For how many looks, the table read and the offers sent, the queue must last while there is a backlog. */
const LOOKS_AHEAD = 3;
const DRAIN_MEMORY_MS = 500;
/** How often delayed Runs are looked for, unless one is known to be due, and the queue's epoch and dead workers. */
const WAKE_EVERY_MS = 250;
const CHECK_EVERY_MS = 1_000;
/** A Run that is still ready so long after its offer is offered again: its job may be gone. If not, that adds nothing. */
const OFFER_AGAIN_MS = 2_000;

/** While no worker is known yet. */
const MIN_DEPTH = 8;

type ReadyRun = RunOffer & { organizationId: string; turn: number; maybeMore: boolean };

export interface DispatcherOptions {
  databaseUrl: string;
  pool: Pool;
  queue: RunQueue;
  controls: QueueControls;
  logger: Logger;
}

/**
 * Offers what is ready, level-triggered over `run_work`: whatever got lost on the way, the row is still there. One leader
 * at a time, but nothing breaks if two believe it: an offer made twice is one job.
 */
export class Dispatcher {
  private readonly loop: LeaderLoop;
  /** When ready Runs were last offered, by job id; only of rows that the last look has seen. A memory, not a truth. */
  private offeredAt = new Map<string, number>();
  /** When each organization was last offered a Run, in turns of a count; only of those that the last look has seen. */
  private servedAt = new Map<string, number>();
  private served = 0;
  private wokeAt = -Infinity;
  /** When the next delayed Run is due, if within a second of the last look at them. */
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
  private pauseMs = IDLE_MS;
  private failing = false;

  constructor(private readonly options: DispatcherOptions) {
    const { databaseUrl, logger } = options;
    this.loop = new LeaderLoop({
      databaseUrl,
      lockId: DISPATCHER_LOCK,
      name: 'dispatcher',
      tick: () => this.tick(),
      outageOf: (error) => (error instanceof QueueAway ? 'the queue' : null),
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
   * There may be something to offer: looks at once, unless it looks often anyway. Not while looks fail: with the queue
   * away every commit would be a nudge.
   */
  nudge(): void {
    if (this.pauseMs > BUSY_MS && !this.failing) this.loop.nudge();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
    await this.lookingAtLimits;
  }

  /**
   * While looks fail nothing is offered, so that it is not only a worker that is missing: queue time stands still. It is
   * written down in PostgreSQL, for the leader after this one.
   */
  private async tick(): Promise<number> {
    const { controls } = this.options;
    try {
      this.pauseMs = await this.look();
      await controls.noteBack();
      this.failing = false;
    } catch (error) {
      this.failing = true;
      await controls.noteAway().catch(() => undefined);
      throw error;
    }
    return Math.min(this.pauseMs, Math.max(0, this.nextDueAt - monotonicNow()));
  }

  /** Answers in how many milliseconds the next is wanted. */
  private async look(): Promise<number> {
    const now = monotonicNow();
    const { controls, queue } = this.options;
    if (now - this.checkedAt >= CHECK_EVERY_MS) await this.check(now);
    const { paused, pausedByTool, away, slots, limited } = await controls.read();
    // Also while paused: whether it answers has to be known.
    const waiting = await queue.waitingCount();
    if (paused || pausedByTool) {
      this.offeredAt.clear();
      this.nextDueAt = Infinity;
      return IDLE_MS;
    }
    if (now - this.wokeAt >= WAKE_EVERY_MS || now >= this.nextDueAt) await this.wakeDelayedRuns(now);
    // What is known to be away has its end told first: it gives ready Runs their queue time back.
    if (limited && !away && now - this.limitsAt >= CHECK_EVERY_MS) this.lookAtLimits(now);
    const depth = this.depthOf(slots);
    // Not worth a look at the table yet; the longer it takes, the less often the queue is asked.
    if (this.backlog && waiting > 0.75 * depth) return Math.min(2 * this.pauseMs, BUSY_MS);
    const offered = await this.offerReadyRuns(2 * windowOf(slots) + slots, depth - waiting);
    if (offered || waiting > 0 || limited) this.busyAt = now;
    if (this.backlog) return DRAIN_MS;
    return now - this.busyAt < BUSY_FOR_MS ? BUSY_MS : IDLE_MS;
  }

  /**
   * How many jobs to keep waiting. A newcomer waits behind them: with half as many as slots, for half the time of a Run
   * (quality, F13). Where Runs are so short that the queue would run dry between two looks, more, up to the window.
   */
  private depthOf(slots: number): number {
    const least = Math.max(MIN_DEPTH, Math.ceil(slots / 2));
    return Math.min(
      windowOf(slots),
      Math.max(least, Math.ceil(this.drainPerMs * LOOKS_AHEAD * (this.lookMs + DRAIN_MS))),
    );
  }

  /** What workers take is what has to be supplied: a mean that forgets within half a second. */
  private measureDrain(taken: number, startedAt: number): void {
    const now = monotonicNow();
    const elapsedMs = Math.max(1, now - this.drainedAt);
    this.lookMs += (now - startedAt - this.lookMs) / 4;
    this.drainPerMs += (taken / elapsedMs - this.drainPerMs) * (1 - Math.exp(-elapsedMs / DRAIN_MEMORY_MS));
    this.drainedAt = now;
  }

  /** Whether there was anything to offer. */
  private async offerReadyRuns(limit: number, room: number): Promise<boolean> {
    const { pool, queue } = this.options;
    const startedAt = monotonicNow();
    const { rows } = await pool.query<ReadyRun>({ ...FIND_READY_RUNS, values: [limit] });
    const now = monotonicNow();
    const fresh = this.inTurn(rows.filter((run) => !this.offeredAt.has(jobIdOf(run))));
    const again = rows.filter((run) => now - (this.offeredAt.get(jobIdOf(run)) ?? now) > OFFER_AGAIN_MS);
    const taken = fresh.slice(0, Math.max(0, room));
    const offers = [...again, ...taken].map(({ runId, threadId, dispatch }) => ({ runId, threadId, dispatch }));
    await queue.offer(offers).catch((error: unknown) => {
      metrics.offers.inc({ path: 'dispatcher', outcome: 'failed' }, offers.length);
      throw error;
    });
    metrics.offers.inc({ path: 'dispatcher', outcome: 'sent' }, offers.length);
    this.noteServed(rows, taken);
    this.measureDrain(taken.length, startedAt);
    const known = new Map(rows.map((run) => [jobIdOf(run), this.offeredAt.get(jobIdOf(run))]));
    for (const offer of offers) known.set(jobIdOf(offer), now);
    this.offeredAt = new Map([...known].filter((entry): entry is [string, number] => entry[1] !== undefined));
    this.backlog = taken.length < fresh.length || (taken.length > 0 && rows.some(({ maybeMore }) => maybeMore));
    return offers.length > 0;
  }

  /**
   * By turns, and where two organizations have the same, the one first that has waited longer: with a queue of 8 jobs, by age
   * alone, three would be offered 3, 3 and 2 of them, always the same.
   */
  private inTurn(runs: ReadyRun[]): ReadyRun[] {
    const servedAt = ({ organizationId }: ReadyRun): number => this.servedAt.get(organizationId) ?? 0;
    return runs.toSorted((a, b) => a.turn - b.turn || servedAt(a) - servedAt(b));
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

  /** For what the fast path (LimitedRuns) has missed. Not awaited: with many limits it takes longer than a look may. */
  private lookAtLimits(now: number): void {
    if (this.lookingAtLimits !== null) return;
    this.limitsAt = now;
    this.lookingAtLimits = lookAtLimits(this.options.pool)
      // They may have been offered before, when there was no room.
      .then((letIn) => letIn.forEach((offer) => this.offeredAt.delete(jobIdOf(offer))))
      .catch((error: unknown) =>
        this.options.logger.warn({ err: error }, 'dispatcher: the limits could not be looked at'),
      )
      .finally(() => (this.lookingAtLimits = null));
  }

  /** Checks whether the queue has lost its data or a tool has paused it, and which workers are gone. */
  private async check(now: number): Promise<void> {
    const { pool, queue, controls, logger } = this.options;
    await pool.query(`delete from workers where seen_at < now() - interval '1 minute'`);
    const kept = await queue.keepEpoch();
    if (!kept && this.epochSeen) logger.warn('queue: it has lost its data; what is ready is offered again');
    if (!kept) this.offeredAt.clear();
    this.epochSeen = true;
    await controls.checkToolPause(queue);
    this.checkedAt = now;
  }
}
