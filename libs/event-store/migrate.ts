import { PostgresConnection } from 'bullmq';
import { openDatabase } from '#platform';
import { Initial1763700000001 } from './migrations/0001-initial.ts';

/** Every migration, oldest first; released ones are never edited, and each works with the previous release. */
const MIGRATIONS = [Initial1763700000001];

/** BullMQ's tables for the PostgreSQL backend live in their own schema. */
export const QUEUE_SCHEMA = 'bullmq';

/** Two processes that start at once must not migrate at once: the second waits. Any number that nobody else uses. */
const MIGRATION_LOCK = 7_215_080;

/** Brings the database up to date, BullMQ's own tables included. Safe to run by any number of processes at once. */
export async function migrate(databaseUrl: string): Promise<void> {
  const database = await openDatabase({
    url: databaseUrl,
    applicationName: 'spool migrate',
    maxConnections: 2,
    statementTimeoutMs: 0,
    migrations: MIGRATIONS,
  });
  const lock = await database.pool.connect();
  try {
    await lock.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await database.dataSource.runMigrations();
    await migrateQueue(databaseUrl);
  } finally {
    // Ending the connection gives the lock back whatever happened.
    lock.release(true);
    await database.close();
  }
}

async function migrateQueue(databaseUrl: string): Promise<void> {
  const queue = new PostgresConnection({ connectionString: databaseUrl, schema: QUEUE_SCHEMA, migrate: true, max: 2 });
  try {
    await queue.waitUntilReady();
  } finally {
    await queue.close();
  }
}
