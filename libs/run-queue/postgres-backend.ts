import { createPostgresBackend, type PgPool, type PostgresConnectionOptions } from 'bullmq';
import { Pool } from 'pg';
import type { Logger } from '#platform';
import type { BullBackend } from './bullmq-backend.ts';
import { throttledWarn } from './throttled-warn.ts';
import { prepareQueue, SCHEMA } from './migrate-queue.ts';

/** Part of the budget in docs/operations/postgresql.md. In a worker, one connection listens. */
const MAX_CONNECTIONS = 4;
const CONNECT_TIMEOUT_MS = 2_000;
const ANSWER_TIMEOUT_MS = 5_000;

/**
 * Opens PostgreSQL as the queue, in BullMQ's own schema of any database. BullMQ lets one process at a time migrate the schema.
 * Throws if PostgreSQL is unavailable, and StartError if the schema is missing and the role cannot create it.
 */
export async function openPostgresBackend(
  url: string,
  name: string,
  logger: Logger,
): Promise<BullBackend<PostgresConnectionOptions>> {
  await prepareQueue(url, name);
  const pool = new Pool({
    connectionString: url,
    application_name: 'spool queue',
    max: MAX_CONNECTIONS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
    statement_timeout: ANSWER_TIMEOUT_MS,
    // BullMQ's statements name no schema.
    options: `-c search_path=${SCHEMA}`,
  });
  const warn = throttledWarn(logger);
  pool.on('error', (error) => warn(error, 'queue connection to PostgreSQL failed (QUEUE_URL or DATABASE_URL)'));
  // BullMQ's own type of the pool lacks `undefined` where pg has it.
  const connection = pool as unknown as PgPool;
  return {
    factory: createPostgresBackend,
    producer: connection,
    connectConsumer: () => connection,
    isUnavailable: () => false,
    close: () => pool.end(),
  };
}
