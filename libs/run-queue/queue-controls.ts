import type { Pool } from 'pg';
import { namedStatement } from '#platform';
import { remember, type Remembered } from './remember.ts';

const READ_CONTROLS = namedStatement(import.meta.dirname, 'read-controls.sql');
const RESUME_QUEUE = namedStatement(import.meta.dirname, 'resume-queue.sql');

/** How old what a process knows of the queue's controls may be. */
const CONTROLS_AGE_MS = 250;

export interface Controls {
  paused: boolean;
  /** Of all workers that are alive. */
  slots: number;
  /** Whether Runs have been ready for longer than an offer takes: there is a backlog. */
  crowded: boolean;
}

/** What is set for the queue as a whole, in PostgreSQL: the pause, and which workers there are. */
export class QueueControls {
  private readonly controls: Remembered<Controls>;

  constructor(
    private readonly pool: Pool,
    private readonly queueName: string,
  ) {
    this.controls = remember(CONTROLS_AGE_MS, async () => {
      const { rows } = await pool.query<Controls>({ ...READ_CONTROLS, values: [queueName] });
      return rows[0] ?? { paused: false, slots: 0, crowded: false };
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

  /** Runs that are queued stay queued, and their queue time stands still. What has been claimed goes on. */
  async pauseQueue(): Promise<void> {
    await this.pool.query(
      `insert into queue_controls (queue, paused_at) values ($1, clock_timestamp())
       on conflict (queue) do update set paused_at = coalesce(queue_controls.paused_at, excluded.paused_at)`,
      [this.queueName],
    );
    this.controls.forget();
  }

  async resumeQueue(): Promise<void> {
    await this.pool.query({ ...RESUME_QUEUE, values: [this.queueName] });
    this.controls.forget();
  }
}
