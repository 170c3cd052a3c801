import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { currentRun } from './test-run.ts';

export interface TestDatabase {
  /** The URL for processes and stores, with the restricted role of installations (docs/adr/0027). */
  url: string;
  /** The URL for actions of specs alone: planting faults, altering tables and events, taking statistics. */
  ownerUrl: string;
  /** Also while connections to it are open. */
  drop(): Promise<void>;
}

/**
 * A migrated database of the caller's own. Cloned from a template that the first caller of a run makes: migrating takes
 * seconds, cloning milliseconds.
 */
export async function createTestDatabase(): Promise<TestDatabase> {
  const { id, databaseUrl } = currentRun();
  const name = `${databasePrefix}${id}_${randomBytes(6).toString('hex')}`;
  await asAdmin(databaseUrl, async (admin) => {
    const template = await findOrMakeTemplate(admin, id, databaseUrl);
    // Copied by file: writing the copy to the WAL costs twice the CPU time.
    await admin.query(`create database ${name} template ${template} strategy file_copy`);
  });
  const ownerUrl = withDatabase(databaseUrl, name);
  return {
    url: asApp(ownerUrl),
    ownerUrl,
    drop: () => asAdmin(databaseUrl, (admin) => dropDatabase(admin, name)),
  };
}

/** Drops all databases of the run, and of runs that are gone: nobody holds their lock. */
export async function dropLeftoverDatabases(admin: Client, ownRunId: string): Promise<void> {
  const { rows } = await admin.query<{ datname: string }>(
    `select datname from pg_database where starts_with(datname, '${databasePrefix}')`,
  );
  for (const { datname } of rows) {
    const runId = datname.slice(databasePrefix.length).split('_')[0]!;
    if (runId === ownRunId || (await isRunGone(admin, runId))) await dropDatabase(admin, datname);
  }
}

/** Holds the run's lock as long as the client is connected. */
export async function lockRun(admin: Client, runId: string): Promise<void> {
  await admin.query('select pg_advisory_lock(hashtext($1))', [databasePrefix + runId]);
}

export async function connectAdmin(databaseUrl: string): Promise<Client> {
  // Always the same database: advisory locks of one are not seen in another.
  const admin = new Client({ connectionString: withDatabase(databaseUrl, 'postgres') });
  admin.on('error', () => undefined); // told by the next query; a test may restart the server
  await admin.connect();
  return admin;
}

const databasePrefix = 'spool_test_';

/**
 * The same for the role of processes. Roles are the server's: all runs share it, and it stays. It has the password that the
 * owner has, so that nobody who does not know that can use it.
 */
function asApp(ownerUrl: string): string {
  const changed = new URL(ownerUrl);
  changed.username = 'spool_test_app';
  return changed.href;
}

async function isRunGone(admin: Client, runId: string): Promise<boolean> {
  const key = databasePrefix + runId;
  const { rows } = await admin.query<{ gone: boolean }>('select pg_try_advisory_lock(hashtext($1)) as gone', [key]);
  if (rows[0]!.gone) await admin.query('select pg_advisory_unlock(hashtext($1))', [key]);
  return rows[0]!.gone;
}

async function findOrMakeTemplate(admin: Client, runId: string, databaseUrl: string): Promise<string> {
  const template = `${databasePrefix}${runId}_template`;
  const unfinished = `${template}_unfinished`;
  await admin.query('select pg_advisory_lock(hashtext($1))', [template]);
  try {
    const found = await admin.query('select from pg_database where datname = $1', [template]);
    if (found.rowCount === 0) {
      await dropDatabase(admin, unfinished);
      await admin.query(`create database ${unfinished}`);
      // Only here: spec files that need no database must not load TypeORM and all that.
      const { migrateInstallation } = await import('#run-queue');
      const ownerUrl = withDatabase(databaseUrl, unfinished);
      await migrateInstallation({ ownerUrl, appUrl: asApp(ownerUrl) });
      await admin.query(`alter database ${unfinished} rename to ${template}`);
    }
  } finally {
    await admin.query('select pg_advisory_unlock(hashtext($1))', [template]);
  }
  return template;
}

async function dropDatabase(admin: Client, name: string): Promise<void> {
  await admin.query(`drop database if exists ${name} with (force)`);
}

export async function asAdmin<T>(databaseUrl: string, act: (admin: Client) => Promise<T>): Promise<T> {
  const admin = await connectAdmin(databaseUrl);
  try {
    return await act(admin);
  } finally {
    await admin.end();
  }
}

/** The URL of a test database with the owner's user instead of its own, through the same proxy if there is one. */
export function asOwner(url: string): string {
  const changed = new URL(url);
  changed.username = new URL(currentRun().databaseUrl).username;
  return changed.href;
}

function withDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}
