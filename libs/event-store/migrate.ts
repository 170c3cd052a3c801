import type { DatabaseError, PoolClient } from 'pg';
import {
  ADVISORY_LOCKS,
  databaseAddress,
  openDatabase,
  StartError,
  type DatabaseOptions,
  type Queryable,
} from '#platform';
import {
  ensureAppRole,
  findMissingRights,
  grantRights,
  knownAppRoles,
  readRole,
  type DatabaseRole,
} from './database-role.ts';
import { MIGRATIONS } from './migrations.ts';

/**
 * Runs the pending migrations and returns their names. Any number of processes may call it concurrently. With a role that does
 * not own the tables, only checks the migrations and the rights of that role. Leaves the queue to `migrateQueue`, because it may
 * be in another database, or in none.
 *
 * @param appUrl its user gets the rights of a process, and is created if it is missing; other roles with these rights keep
 *   them (docs/adr/0027)
 * @throws StartError if migrations or rights are missing, or `appUrl` is given, and the role of `databaseUrl` cannot fix it
 * @throws ConfigError if the user of `appUrl` is missing or has too many rights; nothing was changed
 */
export async function migrate(databaseUrl: string, appUrl?: string): Promise<string[]> {
  const options = { url: databaseUrl, applicationName: 'spool migrate', maxConnections: 1, statementTimeoutMs: 0 };
  const database = await openDatabase(options);
  const lock = await database.pool.connect();
  try {
    await lock.query('select pg_advisory_lock($1)', [ADVISORY_LOCKS.migrations]);
    return await migrateLocked(lock, options, appUrl);
  } finally {
    // Closing the connection releases the lock in any case.
    lock.release(true);
    await database.close();
  }
}

async function migrateLocked(client: PoolClient, options: DatabaseOptions, appUrl?: string): Promise<string[]> {
  const role = await readRole(client);
  const { pending } = await readMigrations(client).catch((error: DatabaseError): MigrationState => {
    if (error.code !== INSUFFICIENT_PRIVILEGE) throw error;
    throw mayNot(options.url, `does not let the role "${role.name}" read its tables`, error);
  });
  if (!mayMigrate(role)) {
    if (pending.length > 0 || appUrl !== undefined) throw mayNot(options.url, reasonAgainst(role, pending.length));
    await requireRights(client, options.url, role);
    return [];
  }
  // Comes before the migrations, so that a wrong role changes nothing.
  const appRole = appUrl === undefined ? null : await ensureAppRole(client, appUrl);
  const names = pending.length === 0 ? [] : await runPending(options);
  // Grants each time, because a process that ran the migrations may have been killed before its grants.
  for (const name of await knownAppRoles(client)) await grantRights(client, name);
  if (appRole !== null) await grantRights(client, appRole);
  return names;
}

async function runPending(options: DatabaseOptions): Promise<string[]> {
  // Imported late: TypeORM takes 0.25 s to load, and most processes never need it.
  const { runMigrations } = await import('./run-migrations.ts');
  return runMigrations(options, MIGRATIONS);
}

/** Returns whether the role may migrate. New tables belong to it, and only the owner of all tables can grant rights on them. */
function mayMigrate({ name, owner, isOwner }: DatabaseRole): boolean {
  return owner === null ? isOwner : owner === name;
}

function reasonAgainst({ name, owner, isOwner }: DatabaseRole, pending: number): string {
  if (owner !== null && (isOwner || pending === 0)) return `has tables owned by the role "${owner}", not by "${name}"`;
  return `needs ${pending} migrations, which the role "${name}" cannot run`;
}

/** Throws if the role lacks a right. An owner of the tables needs no grants. */
async function requireRights(client: PoolClient, url: string, { name, isOwner }: DatabaseRole): Promise<void> {
  const [missing] = isOwner ? [] : await findMissingRights(client);
  if (missing !== undefined) throw mayNot(url, `does not grant the role "${name}" access to ${missing}`);
}

const INSUFFICIENT_PRIVILEGE = '42501';

function mayNot(url: string, what: string, cause?: unknown): StartError {
  const { server, database } = databaseAddress(url);
  const cure = 'run spool migrate --owner-url with the URL of its owner';
  return new StartError(`The database ${database} at ${server || 'localhost'} ${what}: ${cure}.`, { cause });
}

export interface MigrationState {
  /** Migrations of this release that the database lacks. `spool migrate` runs them. */
  pending: string[];
  /** Migrations in the database that belong to a newer release. */
  unknown: string[];
}

/** Returns the state of the migrations in the database. Throws what the database throws. */
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
