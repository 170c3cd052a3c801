import { assertSchemaCompatibility, LATEST_SCHEMA_VERSION, runMigrations, SchemaMigrationRequiredError } from 'bullmq';
import { Client, escapeIdentifier, type DatabaseError } from 'pg';
import { ADVISORY_LOCKS, databaseAddress, StartError } from '#platform';

/** The schema of BullMQ's tables and functions. */
export const SCHEMA = 'bullmq';

const CONNECT_TIMEOUT_MS = 2_000;

/**
 * Prepares BullMQ's schema for the queue of this name. Brings the schema up to date, or checks it if the role cannot change it.
 * Throws StartError if the schema is out of date.
 */
export async function prepareQueue(url: string, name: string): Promise<void> {
  await withClient(url, async (client) => {
    if (await mayMigrate(client)) await runMigrations(client, SCHEMA);
    else await openQueue(client, name).catch((error: unknown) => refuse(error, url));
  });
}

/** Brings BullMQ's schema up to date as its owner, and grants a role its rights. Throws what the database throws. */
export async function migrateQueue(ownerUrl: string, grantTo: string): Promise<void> {
  await withClient(ownerUrl, async (client) => {
    await runMigrations(client, SCHEMA);
    await grantRights(client, grantTo);
  });
}

/** Uses its own connection, because waiting for another process that migrates may take longer than the query timeout. */
async function withClient(url: string, use: (client: Client) => Promise<void>): Promise<void> {
  const client = new Client({
    connectionString: url,
    application_name: 'spool migrate',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  client.on('error', () => undefined); // The query reports it.
  await client.connect();
  try {
    await use(client);
  } finally {
    await client.end();
  }
}

async function mayMigrate(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ mayMigrate: boolean }>(
    `select has_database_privilege(current_database(), 'create')
            and not exists (select from pg_namespace where nspname = $1 and not pg_has_role(nspowner, 'MEMBER'))
            as "mayMigrate"`,
    [SCHEMA],
  );
  return rows[0]!.mayMigrate;
}

class OldSchema extends Error {}

async function openQueue(client: Client, name: string): Promise<void> {
  const version = await assertSchemaCompatibility(client, SCHEMA);
  if (version < LATEST_SCHEMA_VERSION) throw new OldSchema();
  await client.query(`select ${SCHEMA}.spool_open_queue($1)`, [name]);
}

/** Error codes for missing rights, a missing schema and a missing function. */
const NOT_READY = new Set(['42501', '3F000', '42883']);

function refuse(error: unknown, url: string): never {
  const isNotReady =
    error instanceof SchemaMigrationRequiredError ||
    error instanceof OldSchema ||
    NOT_READY.has((error as DatabaseError).code ?? '');
  if (!isNotReady) throw error;
  const { server, database } = databaseAddress(url);
  const cure = 'run spool migrate --owner-url with the URL of its owner';
  throw new StartError(
    `The database ${database} at ${server || 'localhost'} is not migrated for the queue, and its role cannot migrate it; ${cure}, or set QUEUE_URL if the queue is elsewhere.`,
    { cause: error },
  );
}

/**
 * BullMQ creates a sequence for each queue at its first job. The role of processes cannot create it, so a function of the
 * owner does (docs/adr/0027).
 */
const OPEN_QUEUE = `
    create or replace function ${SCHEMA}.spool_open_queue(queue text) returns void
    language plpgsql security definer set search_path = ${SCHEMA}, pg_temp as $$
    begin
      if to_regclass(job_id_seq_name(queue)) is null then
        execute format('create sequence if not exists %I', job_id_seq_name(queue));
      end if;
    exception
      -- Another process that starts has created it meanwhile.
      when unique_violation or duplicate_table then null;
    end
    $$;
    revoke execute on function ${SCHEMA}.spool_open_queue from public;`;

/**
 * Grants all rights on jobs, which are hints (ADR 2), and on objects that a later BullMQ adds. Takes a lock, because
 * concurrent grants on the same objects fail.
 */
async function grantRights(client: Client, role: string): Promise<void> {
  const name = escapeIdentifier(role);
  await client.query(`
    begin;
    select pg_advisory_xact_lock(${ADVISORY_LOCKS.queueRights});
    ${OPEN_QUEUE}
    grant usage on schema ${SCHEMA} to ${name};
    grant select, insert, update, delete on all tables in schema ${SCHEMA} to ${name};
    grant usage, select, update on all sequences in schema ${SCHEMA} to ${name};
    grant execute on function ${SCHEMA}.spool_open_queue to ${name};
    alter default privileges in schema ${SCHEMA} grant select, insert, update, delete on tables to ${name};
    alter default privileges in schema ${SCHEMA} grant usage, select, update on sequences to ${name};
    commit`);
}
