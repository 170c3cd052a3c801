import pg from 'pg';
import type { PolicyVersions } from './policy-watch.ts';

/** Milliseconds; both together must fit into the time for which a look is trusted. */
const CONNECT_TIMEOUT_MS = 1_500;
const ANSWER_TIMEOUT_MS = 1_000;

/**
 * Reads the version on a connection of its own. A look that waited in the pool behind the requests of a busy process would
 * come too late to be trusted, and send each of these requests to the database twice more, when it is busiest.
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
  pool.on('error', () => undefined); // told by the next look
  pool.on('connect', (client) => client.on('error', () => undefined)); // told by its query
  return {
    read: async () => {
      const { rows } = await pool.query<{ version: string }>('select version::text as version from policy_version');
      if (rows[0] === undefined) throw new Error('The table policy_version has no row.');
      return rows[0].version;
    },
    close: () => pool.end(),
  };
}
