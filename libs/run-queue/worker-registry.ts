import type { Pool } from 'pg';
import type { Logger } from '#platform';
import { logSparsely } from './log-sparsely.ts';

/** Three may be missed before the window forgets a worker (read-controls.sql). */
const BEAT_MS = 3_000;

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
      await pool.query(
        `insert into workers (holder, slots, seen_at) values ($1, $2, clock_timestamp())
         on conflict (holder) do update set slots = excluded.slots, seen_at = excluded.seen_at`,
        [holder, slots],
      );
    } catch (error) {
      warn(error, 'queue: a heartbeat failed');
    }
  };
  let beating = beat();
  await beating;
  const timer = setInterval(() => {
    beating = beat();
  }, BEAT_MS);
  return {
    close: async () => {
      clearInterval(timer);
      await beating;
      await pool.query('delete from workers where holder = $1', [holder]).catch((error: unknown) => {
        warn(error, 'queue: a worker could not sign off; it is forgotten in 10 s');
      });
    },
  };
}
