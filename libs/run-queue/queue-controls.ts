import type { Pool } from 'pg';
import { namedStatement } from '#platform';
import { remember, type Remembered } from './remember.ts';

const READ_CONTROLS = namedStatement(import.meta.dirname, 'read-controls.sql');
const RESUME_QUEUE = namedStatement(import.meta.dirname, 'resume-queue.sql');

/** By key: one that takes so long is on a connection that nobody answers any more. Milliseconds. */
const LIMIT = { query_timeout: 2_000 };
/** How old what a process knows of the queue's controls may be. */
const CONTROLS_AGE_MS = 250;

export interface Controls {
  paused: boolean;
  /** Whether the queue is known not to answer, so that Runs cannot be offered. */
  away: boolean;
  /** Of all workers that are alive. */
  slots: number;
  /** Whether Runs have been ready for longer than an offer takes: there is a backlog. */
  crowded: boolean;
  /** Whether any Run waits for a concurrency limit. */
  limited: boolean;
}

/**
 * What is known of the queue as a whole, in PostgreSQL: whether it is paused or away, and which workers there are. While
 * it is either, the queue time of Runs stands still.
 */
export class QueueControls {
  private readonly controls: Remembered<Controls>;
  /** Of a row in `queue_controls` like that of the pause, because its end means the same. */
  readonly awayKey: string;

  constructor(
    private readonly pool: Pool,
    private readonly queueName: string,
  ) {
    this.awayKey = `${queueName} (away)`;
    this.controls = remember(CONTROLS_AGE_MS, async () => {
      const { rows } = await pool.query<Controls>({ ...READ_CONTROLS, ...LIMIT, values: [queueName, this.awayKey] });
      return rows[0] ?? { paused: false, away: false, slots: 0, crowded: false, limited: false };
    });
  }

  /** At most 250 ms old. */
  read(): Promise<Controls> {
    return this.controls.get();
  }

  /** At most 250 ms old: cheap enough to be asked before each claim. */
  async isPaused(): Promise<boolean> {
    return (await this.read()).paused;
  }

  /** At most 250 ms old: whether queue time stands still. */
  async isHeld(): Promise<boolean> {
    const { paused, away } = await this.read();
    return paused || away;
  }

  /** Runs that are queued stay queued, and their queue time stands still. What has been claimed goes on. */
  async pauseQueue(): Promise<void> {
    await this.hold(this.queueName);
  }

  async resumeQueue(): Promise<void> {
    await this.release(this.queueName, this.awayKey);
  }

  /** Written down once an outage, so that whoever leads next can tell its end. */
  async noteAway(): Promise<void> {
    if (!(await this.read()).away) await this.hold(this.awayKey);
  }

  async noteBack(): Promise<void> {
    if ((await this.read()).away) await this.release(this.awayKey, this.queueName);
  }

  private async hold(key: string): Promise<void> {
    await this.pool.query(
      `insert into queue_controls (queue, paused_at) values ($1, clock_timestamp())
       on conflict (queue) do update set paused_at = coalesce(queue_controls.paused_at, excluded.paused_at)`,
      [key],
    );
    this.controls.forget();
  }

  private async release(key: string, otherKey: string): Promise<void> {
    await this.pool.query({ ...RESUME_QUEUE, values: [key, otherKey] });
    this.controls.forget();
  }
}
