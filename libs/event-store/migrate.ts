import { openDatabase, type Queryable } from '#platform';
import { Initial1763700000001 } from './migrations/0001-initial.ts';
import { Files1763700000002 } from './migrations/0002-files.ts';
import { PolicyVersion1763700000003 } from './migrations/0003-policy-version.ts';
import { ClientExternalRef1763700000004 } from './migrations/0004-client-external-ref.ts';
import { Management1763700000005 } from './migrations/0005-management.ts';
import { ConcurrencyLimits1763700000006 } from './migrations/0006-concurrency-limits.ts';
import { Folders1763700000007 } from './migrations/0007-folders.ts';
import { RunLists1763700000008 } from './migrations/0008-run-lists.ts';
import { OperatorSessions1763700000009 } from './migrations/0009-operator-sessions.ts';
import { TraceContext1763700000010 } from './migrations/0010-trace-context.ts';
import { ExternalRefs1763700000011 } from './migrations/0011-external-refs.ts';
import { TokenLimits1763700000012 } from './migrations/0012-token-limits.ts';
import { ExternalRefIndices1763700000013 } from './migrations/0013-external-ref-indices.ts';

/** Every migration, oldest first; released ones are never edited, and each works with the previous release. */
const MIGRATIONS = [
  Initial1763700000001,
  Files1763700000002,
  PolicyVersion1763700000003,
  ClientExternalRef1763700000004,
  Management1763700000005,
  ConcurrencyLimits1763700000006,
  Folders1763700000007,
  RunLists1763700000008,
  OperatorSessions1763700000009,
  TraceContext1763700000010,
  ExternalRefs1763700000011,
  TokenLimits1763700000012,
  ExternalRefIndices1763700000013,
];

/** Two processes that start at once must not migrate at once: the second waits. Any number that nobody else uses. */
const MIGRATION_LOCK = 7_215_080;

/**
 * Brings the database up to date, and answers which migrations that took. Safe to run by any number of processes at once.
 * The queue is not in it: it may be another database, or none, and whoever opens it brings it up to date.
 */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const options = { url: databaseUrl, applicationName: 'spool migrate', maxConnections: 1, statementTimeoutMs: 0 };
  const database = await openDatabase(options);
  const lock = await database.pool.connect();
  try {
    await lock.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
    if ((await readMigrations(lock)).pending.length === 0) return [];
    // Only here: TypeORM takes a quarter of a second to load, at every start of every process.
    const { runMigrations } = await import('./run-migrations.ts');
    return await runMigrations(options, MIGRATIONS);
  } finally {
    // Ending the connection gives the lock back whatever happened.
    lock.release(true);
    await database.close();
  }
}

export interface MigrationState {
  /** Of this release, not yet in the database: `spool migrate` brings them. */
  pending: string[];
  /** In the database, of a newer release. */
  unknown: string[];
}

/** What the database has of the migrations. Throws what the database throws. */
export async function readMigrations(pool: Queryable): Promise<MigrationState> {
  const { rows: tables } = await pool.query<{ found: boolean }>(
    `select to_regclass('migrations') is not null as found`,
  );
  const { rows } = tables[0]?.found ? await pool.query<{ name: string }>('select name from migrations') : { rows: [] };
  const done = rows.map(({ name }) => name);
  const ours = MIGRATIONS.map(({ name }) => name);
  return {
    pending: ours.filter((name) => !done.includes(name)),
    unknown: done.filter((name) => !ours.includes(name)),
  };
}
