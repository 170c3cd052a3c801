import type { Client, ClientBase, CustomTypesConfig, Pool, PoolConfig } from 'pg';
import pg from 'pg';
import { pauseIfLong } from '../process/own-turn.ts';

/** Settings that are stated, not left to chance. Milliseconds. */
const CONNECT_TIMEOUT_MS = 2_000;
/** Both below 30 s: an idempotency key must not be in progress for longer, whatever becomes of its process. */
const STATEMENT_TIMEOUT_MS = 25_000;
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 15_000;
/** An answer that is so much later than the server's own timeout will never come: the connection is half open. */
const ANSWER_MARGIN_MS = 5_000;

/**
 * A named statement keeps its plan, and one made while a table was small was a scan, also when the table had grown to
 * thousands of rows a minute later. Everything of ours is looked up by key, so scans are only for what has none; and
 * compiling a plan, which their made-up cost would cause, takes longer than any of our statements.
 */
const SESSION_SETTINGS = '-c timezone=UTC -c enable_seqscan=off -c jit=off';

export interface DatabaseOptions {
  url: string;
  /** Shown in `pg_stat_activity`: which process this is. */
  applicationName: string;
  /** Connections of the pool. A process opens at most 12 more beside its main pool (docs/operations/postgresql.md). */
  maxConnections: number;
  statementTimeoutMs?: number;
  /** An idle connection broke. The pool replaces it; this is for the log. */
  onError?: (error: Error) => void;
}

/** One process's connections to PostgreSQL. */
export interface Database {
  /** Hot statements are named, which TypeORM's `query()` cannot do; it is loaded for migrations alone, where there are any. */
  pool: Pool;
  close(): Promise<void>;
}

/** Throws what the database throws where it does not answer. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const pool = new pg.Pool(poolSettings(options));
  pool.on('error', options.onError ?? (() => undefined));
  (await pool.connect()).release();
  return { pool, close: () => pool.end() };
}

/** For whoever makes the pool. */
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
    types: { getTypeParser },
    onConnect: (client: ClientBase) => {
      // The pool listens to idle connections only: one that broke while it was lent out would end the process.
      client.on('error', () => undefined); // told by its query
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

/** Times come as RFC 3339 text, as everything of ours keeps them; counts and positions as numbers. */
function getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
  if (oid === TIMESTAMPTZ && format !== 'binary') return toRfc3339;
  if (oid === INT8 && format !== 'binary') return Number;
  return pg.types.getTypeParser(oid, format) as (value: string) => unknown;
}

const JSONB = 3802;

/** The types of a query whose `jsonb` values are to be parsed later: a large one takes a step of its own. */
export const JSONB_AS_TEXT: CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === JSONB ? (value: string) => value : getTypeParser(oid, format),
};

/** PostgreSQL's `2026-11-21 05:50:08.12+00` as `2026-11-21T05:50:08.120Z`; sessions are in UTC. */
export function toRfc3339(text: string): string {
  const seconds = text.slice(0, 19).replace(' ', 'T');
  const fraction = text.endsWith('+00') ? text.slice(20, -3) : null;
  if (fraction === null) return new Date(text).toISOString();
  return `${seconds}.${fraction.slice(0, 3).padEnd(3, '0')}Z`;
}

/** The database does not answer: the caller may try again. The API's 503 (docs/spec/decisions.md#errors). */
export class DatabaseAway extends Error {
  constructor(cause: unknown) {
    super('The database does not answer.', { cause });
    this.name = 'DatabaseAway';
  }
}

// Connection exceptions, server shutting down or starting, out of resources (a full disk: 53100), failures of its system and of
// itself: SQLSTATE classes 08, 57P, 53, 58030 and XX000 (not that a row is damaged, XX001: that is so whenever one looks).
// 25P03: it has ended a session that was silent in a transaction. 25006: it has become read-only, as a primary does that was
// replaced; the next connection may lead to the new one.
const AWAY_STATES = /^(08...|57P0[1-5]|53[0-4]..|58030|XX000|25P03|25006)$/;
const AWAY_CODES = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'],
  ...['ENOTFOUND', 'EAI_AGAIN', 'ENOENT'],
]);
const AWAY_MESSAGES =
  /^(Connection terminated|timeout exceeded when trying to connect|Client (has encountered|was closed)|Query read timeout)/;

/** Whether the error says that the connection or the server is gone, so that a statement sent may or may not have run. */
export function isDatabaseAway(error: unknown): boolean {
  if (error instanceof DatabaseAway) return true;
  // Not `instanceof Error`: those of Node's sockets are of another realm where tests run.
  const { code, message, syscall } = (error ?? {}) as { code?: unknown; message?: unknown; syscall?: unknown };
  // ENOENT from a connection means a missing Unix socket; from a file, a missing certificate of the URL.
  if (syscall === 'open') return false;
  if (typeof code === 'string' && code !== '') return AWAY_STATES.test(code) || AWAY_CODES.has(code);
  return typeof message === 'string' && AWAY_MESSAGES.test(message);
}
