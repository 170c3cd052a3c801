import type { Pool } from 'pg';
import { BEAT_TIMEOUT, startHeartbeat, type Logger } from '#platform';
import { logSparsely } from './log-sparsely.ts';

export interface WorkerOptions {
  /** The same name that its claims carry. */
  holder: string;
  slots: number;
}

export interface RegisteredWorker {
  /** The last beat; the window shrinks at once. */
  close(): Promise<void>;
}

/** Says in the table `workers`, for as long as it lives, that this worker is there. */
export async function registerWorker(
  pool: Pool,
  { holder, slots }: WorkerOptions,
  logger: Logger,
): Promise<RegisteredWorker> {
  const warn = logSparsely(logger);
  const beat = async (): Promise<void> => {
    try {
      await pool.query({
        text: `insert into workers (holder, slots, seen_at) values ($1, $2, clock_timestamp())
         on conflict (holder) do update set slots = excluded.slots, seen_at = excluded.seen_at`,
        values: [holder, slots],
        ...BEAT_TIMEOUT,
      });
    } catch (error) {
      warn(error, 'queue: a heartbeat failed');
    }
  };
  const heartbeat = await startHeartbeat(beat);
  return {
    close: async () => {
      await heartbeat.stop();
      await pool.query('delete from workers where holder = $1', [holder]).catch((error: unknown) => {
        warn(error, 'queue: a worker could not sign off; it is forgotten in 10 s');
      });
    },
  };
}
