import type { Pool } from 'pg';
import { queryTimeout, namedStatement } from '#platform';
import { memoizeWithTtl, type Memoized } from './memoize-with-ttl.ts';
import type { RunQueue } from './run-queue.ts';

const READ_CONTROLS = namedStatement(import.meta.dirname, 'read-controls.sql');
const RESUME_QUEUE = namedStatement(import.meta.dirname, 'resume-queue.sql');

/** By key: one that takes so long is on a connection that nobody answers any more. Milliseconds. */
const TIMEOUT = queryTimeout(2_000);
/** How old what a process knows of the queue's controls may be. */
const CONTROLS_AGE_MS = 250;

export interface Controls {
  /** Paused by an operator of Spool. */
  paused: boolean;
  /** Paused by a BullMQ tool, such as Bull Board or a script. */
  pausedByTool: boolean;
  /** Whether the queue is known not to answer, so that Runs cannot be offered. */
  away: boolean;
  /** Of all workers that are alive. */
  slots: number;
  /** Whether Runs have been ready for longer than an offer takes: there is a backlog. */
  crowded: boolean;
  /** Whether any Run waits for a concurrency limit. */
  limited: boolean;
}

const NOTHING_KNOWN: Controls = {
  paused: false,
  pausedByTool: false,
  away: false,
  slots: 0,
  crowded: false,
  limited: false,
};

/**
 * The state of the queue as a whole, in PostgreSQL: its pauses, its outage and its workers. The queue time of Runs stands still
 * during a pause or an outage.
 */
export class QueueControls {
  /** Slots of the worker in this process. They count for the cap before the heartbeat of the worker is known. */
  ownSlots = 0;
  private readonly controls: Memoized<Controls>;
  /** The keys of further rows in `queue_controls`. Their end has the same effect as that of the pause. */
  readonly outageKey: string;
  readonly toolPauseKey: string;

  constructor(
    private readonly pool: Pool,
    private readonly queueName: string,
    /** Percentage of all slots that one organization may hold. */
    private readonly percentPerOrganization = 100,
  ) {
    this.outageKey = `${queueName} (away)`;
    this.toolPauseKey = `${queueName} (BullMQ)`;
    this.controls = memoizeWithTtl(CONTROLS_AGE_MS, async () => {
      const { rows } = await pool.query<Controls>({ ...READ_CONTROLS, ...TIMEOUT, values: this.keys });
      return rows[0] ?? NOTHING_KNOWN;
    });
  }

  /** At most 250 ms old. */
  read(): Promise<Controls> {
    return this.controls.get();
  }

  /**
   * Returns how many slots one organization may hold, unless it has a limit of its own. Returns null if there is no cap, and in a
   * process without a worker while no worker is known. Follows the slots of the live workers, and is at least 1.
   */
  async slotsPerOrganization(): Promise<number | null> {
    if (this.percentPerOrganization >= 100) return null;
    const slots = Math.max(this.ownSlots, (await this.read()).slots);
    return slots === 0 ? null : Math.max(1, Math.floor((slots * this.percentPerOrganization) / 100));
  }

  /** The keys of the pause, the outage and the pause of a tool, in the order of the statements' parameters. */
  get keys(): [string, string, string] {
    return [this.queueName, this.outageKey, this.toolPauseKey];
  }

  /**
   * Returns whether an operator has paused the queue; at most 250 ms old, so cheap enough to call before each claim. Ignores the
   * pause of a tool: BullMQ then holds back the jobs, and a job that still arrives was taken before the pause or after its end.
   */
  async isPaused(): Promise<boolean> {
    return (await this.read()).paused;
  }

  /** At most 250 ms old: whether queue time stands still. */
  async isHeld(): Promise<boolean> {
    const { paused, pausedByTool, away } = await this.read();
    return paused || pausedByTool || away;
  }

  /** Runs that are queued stay queued, and their queue time stands still. What has been claimed goes on. */
  async pauseQueue(): Promise<void> {
    await this.hold(this.queueName);
  }

  async resumeQueue(): Promise<void> {
    await this.release(this.queueName);
  }

  /** Written down once an outage, so that whoever leads next can tell its end. */
  async noteUnavailable(): Promise<void> {
    if (!(await this.read()).away) await this.hold(this.outageKey);
  }

  async noteAvailable(): Promise<void> {
    if ((await this.read()).away) await this.release(this.outageKey);
  }

  /** Asks the queue whether a tool has paused it, and records when the pause began or ended. Throws if the queue is unavailable. */
  async checkToolPause(queue: Pick<RunQueue, 'isPausedByTool'>): Promise<void> {
    const isPaused = await queue.isPausedByTool();
    if ((await this.read()).pausedByTool === isPaused) return;
    await (isPaused ? this.hold(this.toolPauseKey) : this.release(this.toolPauseKey));
  }

  private async hold(key: string): Promise<void> {
    await this.pool.query(
      `insert into queue_controls (queue, paused_at) values ($1, clock_timestamp())
       on conflict (queue) do update set paused_at = coalesce(queue_controls.paused_at, excluded.paused_at)`,
      [key],
    );
    this.controls.forget();
  }

  private async release(key: string): Promise<void> {
    const others = this.keys.filter((other) => other !== key);
    await this.pool.query({ ...RESUME_QUEUE, values: [key, others] });
    this.controls.forget();
  }
}
