import type { Client, ClientBase, CustomTypesConfig, Pool, PoolConfig } from 'pg';
import pg from 'pg';
import { pauseIfLong } from '../process/own-turn.ts';

/** The timeout of a connection attempt, milliseconds. */
const CONNECT_TIMEOUT_MS = 2_000;
/** Both timeouts are below 30 s: an idempotency key must not stay in progress longer, even if its process dies. */
const STATEMENT_TIMEOUT_MS = 25_000;
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 15_000;
/** A response this much later than the server's own timeout will never come: the connection is half open. */
const ANSWER_MARGIN_MS = 5_000;

/**
 * Disables sequential scans, because a named statement would keep a scan planned for a small table after the table has grown. Our
 * queries look up by key, so only queries without an index scan. The inflated cost of such a scan would trigger JIT, which takes
 * longer than any of our statements.
 */
const SESSION_SETTINGS = '-c timezone=UTC -c enable_seqscan=off -c jit=off';

export interface DatabaseOptions {
  url: string;
  /** The name of this process in `pg_stat_activity`. */
  applicationName: string;
  /** Connections of the pool. A process opens at most 12 more beside its main pool (docs/operations/postgresql.md). */
  maxConnections: number;
  statementTimeoutMs?: number;
  /** Called for the log when an idle connection broke. The pool replaces it. */
  onError?: (error: Error) => void;
}

/** The connections of one process to PostgreSQL. */
export interface Database {
  /** The pool of `pg`, because TypeORM's `query()` cannot name statements. TypeORM is loaded only if migrations are due. */
  pool: Pool;
  close(): Promise<void>;
}

/** Opens a pool. Throws the error of `pg` if the first connection fails. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const pool = new pg.Pool(poolSettings(options));
  pool.on('error', options.onError ?? (() => undefined));
  (await pool.connect()).release();
  return { pool, close: () => pool.end() };
}

/** Returns the settings of a pool, for callers that create it differently. */
export function poolSettings(options: Omit<DatabaseOptions, 'onError'>): PoolConfig {
  const { url, applicationName, maxConnections, statementTimeoutMs = STATEMENT_TIMEOUT_MS } = options;
  return {
    connectionString: url,
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    max: maxConnections,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    statement_timeout: statementTimeoutMs,
    query_timeout: statementTimeoutMs === 0 ? 0 : statementTimeoutMs + ANSWER_MARGIN_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    options: SESSION_SETTINGS,
    types: DEFAULT_TYPES,
    onConnect: (client: ClientBase) => {
      // The pool listens to idle connections only. An unhandled error of a lent one would end the process.
      client.on('error', () => undefined); // reported by its query
      parseInTurns(client);
    },
  };
}

/** Bytes. A smaller part of a response is parsed in less than a millisecond. */
const LARGE_PART = 16 * 1024;

/**
 * Parses large responses in several turns of the event loop. Otherwise a turn would parse all that has arrived on all
 * connections: ten results of 10,000 rows took 100 ms.
 */
function parseInTurns(client: ClientBase): void {
  const { stream } = (client as Client).connection;
  // pg listens to the stream first, so the part is parsed by now.
  stream.on('data', ({ length }: Buffer) => {
    const turn = length < LARGE_PART ? undefined : pauseIfLong();
    if (turn === undefined) return;
    stream.pause();
    void turn.then(() => stream.resume());
  });
}

const TIMESTAMPTZ = 1184;
const INT8 = 20;

/** Parses times as RFC 3339 text, the form that Spool uses everywhere, and counts and positions as numbers. */
function getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
  if (oid === TIMESTAMPTZ && format !== 'binary') return toRfc3339;
  if (oid === INT8 && format !== 'binary') return Number;
  return pg.types.getTypeParser(oid, format) as (value: string) => unknown;
}

/** The types of all queries, unless they name others. */
export const DEFAULT_TYPES: CustomTypesConfig = { getTypeParser };

const JSONB = 3802;

/** The types of a query that leaves `jsonb` values as text. Callers parse a large one later, in a separate turn. */
export const JSONB_AS_TEXT: CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === JSONB ? (value: string) => value : getTypeParser(oid, format),
};

/** Converts PostgreSQL's `2026-11-21 05:50:08.12+00` to `2026-11-21T05:50:08.120Z`. Sessions are in UTC. */
export function toRfc3339(text: string): string {
  const seconds = text.slice(0, 19).replace(' ', 'T');
  const fraction = text.endsWith('+00') ? text.slice(20, -3) : null;
  if (fraction === null) return new Date(text).toISOString();
  return `${seconds}.${fraction.slice(0, 3).padEnd(3, '0')}Z`;
}

/** The database is unavailable, and the caller may retry. The API returns 503 (docs/spec/decisions.md#errors). */
export class DatabaseUnavailable extends Error {
  constructor(cause: unknown) {
    super('The database does not answer.', { cause });
    this.name = 'DatabaseUnavailable';
  }
}

// SQLSTATE 08: connection exceptions. 57P: the server is shutting down or starting. 53: out of resources (a full disk: 53100).
// 58030 and XX000: failures of the system and of the server. Not XX001, a damaged row, which a retry finds damaged again.
// 25P03: the server ended a session that was idle in a transaction. 25006: the server is read-only, like a replaced primary; the
// next connection may lead to the new one.
const UNAVAILABLE_STATES = /^(08...|57P0[1-5]|53[0-4]..|58030|XX000|25P03|25006)$/;
const UNAVAILABLE_CODES = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'],
  ...['ENOTFOUND', 'EAI_AGAIN', 'ENOENT'],
]);
const UNAVAILABLE_MESSAGES =
  /^(Connection terminated|timeout exceeded when trying to connect|Client (has encountered|was closed)|Query read timeout)/;

/** Returns whether the error means a lost connection or server. It is then unknown whether the statement ran. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) return true;
  // Not `instanceof Error`: in tests, errors of Node's sockets belong to another realm.
  const { code, message, syscall } = (error ?? {}) as { code?: unknown; message?: unknown; syscall?: unknown };
  // ENOENT from a connection means a missing Unix socket; from a file, a missing certificate of the URL.
  if (syscall === 'open') return false;
  if (typeof code === 'string' && code !== '') return UNAVAILABLE_STATES.test(code) || UNAVAILABLE_CODES.has(code);
  return typeof message === 'string' && UNAVAILABLE_MESSAGES.test(message);
}
