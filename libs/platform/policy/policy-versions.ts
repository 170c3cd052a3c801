import pg from 'pg';
import type { PolicyVersions } from './policy-watch.ts';

/** Milliseconds. Their sum must not exceed the time for which a look is trusted. */
const CONNECT_TIMEOUT_MS = 1_500;
const ANSWER_TIMEOUT_MS = 1_000;

/**
 * Reads the version on a dedicated connection. In the pool of a busy process, a look would wait behind requests until it is too
 * late to be trusted. Each of these requests would then cause two more queries, when the database is busiest.
 */
export function openPolicyVersions(databaseUrl: string): PolicyVersions {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    application_name: 'spool policy',
    max: 1,
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
  });
  pool.on('error', () => undefined); // reported by the next look
  pool.on('connect', (client) => client.on('error', () => undefined)); // reported by its query
  return {
    read: async () => {
      const { rows } = await pool.query<{ version: string }>('select version::text as version from policy_version');
      if (rows[0] === undefined) throw new Error('The table policy_version has no row.');
      return rows[0].version;
    },
    close: () => pool.end(),
  };
}
