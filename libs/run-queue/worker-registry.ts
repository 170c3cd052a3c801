import type { Pool } from 'pg';
import { BEAT_TIMEOUT, startHeartbeat, type Logger } from '#platform';
import { throttledWarn } from './throttled-warn.ts';

export interface WorkerOptions {
  /** The worker's id, as in its claims. */
  holder: string;
  slots: number;
  /** The sandbox of its tool servers, for `doctor`. */
  sandbox?: object | undefined;
}

export interface RegisteredWorker {
  /** Deletes the row of the worker, so the window shrinks immediately. */
  close(): Promise<void>;
}

/** Repeats the last heartbeat of the worker $1. Does nothing after its sign-off, so that others do not wait for it. */
export const HEARTBEAT_FOR_WORKER = 'update workers set seen_at = clock_timestamp() where holder = $1';

/** Writes the heartbeat of this worker to the table `workers` until it is closed. */
export async function registerWorker(
  pool: Pool,
  { holder, slots, sandbox }: WorkerOptions,
  logger: Logger,
): Promise<RegisteredWorker> {
  const warn = throttledWarn(logger);
  const beat = async (): Promise<void> => {
    try {
      await pool.query({
        text: `insert into workers (holder, slots, seen_at, sandbox) values ($1, $2, clock_timestamp(), $3)
         on conflict (holder) do update set slots = excluded.slots, seen_at = excluded.seen_at, sandbox = excluded.sandbox`,
        values: [holder, slots, sandbox ?? null],
        ...BEAT_TIMEOUT,
      });
    } catch (error) {
      warn(error, 'worker heartbeat failed');
    }
  };
  const heartbeat = await startHeartbeat(beat);
  return {
    close: async () => {
      await heartbeat.stop();
      await pool.query('delete from workers where holder = $1', [holder]).catch((error: unknown) => {
        warn(error, 'worker could not sign off; it expires in 10 s');
      });
    },
  };
}
