import type { Pool } from 'pg';
import { queryTimeout, namedStatement, type Queryable } from '#platform';
import { memoizeWithTtl, type Memoized } from './memoize-with-ttl.ts';
import type { RunQueue } from './run-queue.ts';

const READ_CONTROLS = namedStatement(import.meta.dirname, 'read-controls.sql');
const RESUME_QUEUE = namedStatement(import.meta.dirname, 'resume-queue.sql');

/** A look-up by key that takes longer is on a dead connection. Milliseconds. */
const TIMEOUT = queryTimeout(2_000);
/** How long the controls are cached. */
const CONTROLS_AGE_MS = 250;

export interface Controls {
  /** Paused by an operator of Spool. */
  paused: boolean;
  /** Paused by a BullMQ tool, such as Bull Board or a script. */
  pausedByTool: boolean;
  /** Whether the queue is known not to respond, so that Runs cannot be enqueued. */
  unavailable: boolean;
  /** Slots of all live workers. */
  slots: number;
  /** Whether there is a backlog: Runs have been ready for longer than enqueueing takes. */
  crowded: boolean;
  /** Whether any Run waits for a concurrency limit. */
  limited: boolean;
}

const NOTHING_KNOWN: Controls = {
  paused: false,
  pausedByTool: false,
  unavailable: false,
  slots: 0,
  crowded: false,
  limited: false,
};

/**
 * The state of the whole queue, in PostgreSQL: its pauses, its outage and its workers. The queue time of Runs stops during a
 * pause or an outage.
 */
export class QueueControls {
  /** Slots of the worker in this process. They count for the cap before the heartbeat of the worker is known. */
  ownSlots = 0;
  private readonly controls: Memoized<Controls>;
  /** The keys of further rows in `queue_controls`. They end like the pause. */
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

  /** Returns the controls, at most 250 ms old. */
  read(): Promise<Controls> {
    return this.controls.get();
  }

  /**
   * Returns how many slots an organization without its own limit may hold, at least 1. Follows the slots of the live workers.
   * Returns null if there is no cap, and in a process without a worker while no worker is known.
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

  /** Returns whether queue time is stopped; at most 250 ms old. */
  async isHeld(): Promise<boolean> {
    const { paused, pausedByTool, unavailable } = await this.read();
    return paused || pausedByTool || unavailable;
  }

  /**
   * Pauses the queue. Queued Runs stay queued, and their queue time stops. Claimed Runs continue. A `client` makes it part of a
   * transaction. Returns false if the queue was paused already.
   */
  pauseQueue(client?: Queryable): Promise<boolean> {
    return this.hold(this.queueName, client);
  }

  /** Ends the pause by `pauseQueue`. A `client` makes it part of a transaction. Returns false if there was none. */
  resumeQueue(client?: Queryable): Promise<boolean> {
    return this.release(this.queueName, client);
  }

  /** Records an outage once, so that the next leader can end it. */
  async noteUnavailable(): Promise<void> {
    if (!(await this.read()).unavailable) await this.hold(this.outageKey);
  }

  async noteAvailable(): Promise<void> {
    if ((await this.read()).unavailable) await this.release(this.outageKey);
  }

  /** Asks the queue whether a tool has paused it, and records when the pause began or ended. Throws if the queue is unavailable. */
  async checkToolPause(queue: Pick<RunQueue, 'isPausedByTool'>): Promise<void> {
    const isPaused = await queue.isPausedByTool();
    if ((await this.read()).pausedByTool === isPaused) return;
    await (isPaused ? this.hold(this.toolPauseKey) : this.release(this.toolPauseKey));
  }

  private async hold(key: string, client: Queryable = this.pool): Promise<boolean> {
    const { rowCount } = await client.query({
      text: `insert into queue_controls (queue, paused_at) values ($1, clock_timestamp())
             on conflict (queue) do update set paused_at = excluded.paused_at where queue_controls.paused_at is null`,
      values: [key],
    });
    this.controls.forget();
    return rowCount === 1;
  }

  private async release(key: string, client: Queryable = this.pool): Promise<boolean> {
    const others = this.keys.filter((other) => other !== key);
    const { rows } = await client.query<{ ended: boolean }>({ ...RESUME_QUEUE, values: [key, others] });
    this.controls.forget();
    return rows[0]?.ended ?? false;
  }
}
