import type { Pool } from 'pg';
import { BEAT_TIMEOUT, namedStatement, newId, startHeartbeat, type Logger } from '#platform';

const REGISTER_API_PROCESS = namedStatement(import.meta.dirname, 'register-api-process.sql');

/** How long a count stays in use after a lower one. Every process that can reach PostgreSQL beats meanwhile. */
const KEEP_MS = 10_000;

export interface ApiProcessTimes {
  /** The interval of heartbeats. */
  beatMs?: number;
  /** How long a count stays in use after a lower one; 10 s by default. */
  keepMs?: number;
}

/** The API processes of the installation. */
export interface ApiProcesses {
  /**
   * Returns the highest number of live processes, including this one, at the last heartbeat and in the 10 s before it.
   * After an outage of PostgreSQL, the first process to send a heartbeat finds no others.
   */
  count(): number;
  /** Removes this process from the registry. */
  close(): Promise<void>;
}

/**
 * Registers this API process with a heartbeat, so that the processes can divide a rate limit. The rows are in `rate_limits`,
 * where they expire like counts; the previous release ignores them.
 */
export async function registerApiProcess(
  pool: Pool,
  logger: Logger,
  { beatMs, keepMs = KEEP_MS }: ApiProcessTimes = {},
): Promise<ApiProcesses> {
  const id = newId();
  let counts = [{ alive: 1, until: Infinity }];
  const count = (): number => Math.max(...counts.map(({ alive }) => alive));
  const add = (alive: number, now: number): void => {
    counts.at(-1)!.until = now + keepMs;
    counts = [...counts.filter(({ until }) => until > now), { alive, until: Infinity }];
  };
  let isFailing = false;
  const beat = async (): Promise<void> => {
    try {
      const { rows } = await pool.query<{ alive: number }>({ ...REGISTER_API_PROCESS, values: [id], ...BEAT_TIMEOUT });
      add(rows[0]!.alive, performance.now());
      isFailing = false;
    } catch (err) {
      if (!isFailing) logger.warn({ err, apiProcesses: count() }, 'rate limit heartbeat failed');
      isFailing = true;
    }
  };
  const heartbeat = await startHeartbeat(beat, beatMs);
  return {
    count,
    close: async () => {
      // Does not wait for a beat in progress, because the port closes only after this. Such a beat may register the
      // process for 10 s more.
      void heartbeat.stop();
      const deregister = { text: 'delete from rate_limits where key = $1', values: [`api:${id}`], ...BEAT_TIMEOUT };
      await pool.query(deregister).catch((err: unknown) => {
        logger.warn({ err }, 'rate limit deregistration failed; other processes count this one for up to 25 s');
      });
    },
  };
}
