import { escapeIdentifier, escapeLiteral, type DatabaseError, type PoolClient } from 'pg';
import { ConfigError, databaseUser, readSql, StartError, type Queryable } from '#platform';

/** The rights of a connection's role beyond the work of a process (docs/adr/0027). */
export interface DatabaseRole {
  name: string;
  /** The owner of the tables; null if there are none. */
  owner: string | null;
  isSuperuser: boolean;
  /** Whether it has all rights of the owner, or may create the tables if there are none. */
  isOwner: boolean;
  /** Whether it may create tables and functions in the schema. */
  mayCreate: boolean;
  /** The append-only tables that it may change or empty. */
  mayChange: string[];
}

const READ_ROLE = readSql(import.meta.dirname, 'read-role.sql');
const GRANT_RIGHTS = readSql(import.meta.dirname, 'grant-rights.sql');
const FIND_MISSING_RIGHTS = readSql(import.meta.dirname, 'find-missing-rights.sql');

/** Returns the role of the connection. Throws what the database throws. */
export async function readRole(pool: Queryable): Promise<DatabaseRole> {
  const { rows } = await pool.query<DatabaseRole>(READ_ROLE);
  return rows[0]!;
}

/** Returns the tables and functions of this release that the role of the connection has no rights on. */
export async function findMissingRights(pool: Queryable): Promise<string[]> {
  return (await pool.query<{ name: string }>(FIND_MISSING_RIGHTS)).rows.map(({ name }) => name);
}

/** Returns the roles that have the rights of a process: all that may delete a Thread, except the owner. */
export async function knownAppRoles(pool: Queryable): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `select r.rolname as name
     from pg_proc p, aclexplode(p.proacl) a join pg_roles r on r.oid = a.grantee
     where p.oid = to_regproc('delete_stream') and a.grantee <> p.proowner
     order by name`,
  );
  return rows.map(({ name }) => name);
}

/**
 * Returns the user of the URL. Creates the role, with the URL's password, if the server has no role of that name.
 *
 * @throws StartError if the role is missing and cannot be created
 * @throws ConfigError if the URL has no user, or the role could change the schema regardless of grants
 */
export async function ensureAppRole(client: PoolClient, appUrl: string): Promise<string> {
  const { name, password } = databaseUser(appUrl);
  if (name === null) throw new ConfigError('DATABASE_URL has no user; add the role that Spool’s processes connect as.');
  const { rows } = await client.query<{ tooStrong: boolean }>(
    `select rolsuper or rolcreaterole or pg_has_role(rolname, current_user, 'MEMBER')
              or coalesce(pg_has_role(rolname, (select relowner from pg_class where oid = to_regclass('events')), 'MEMBER'), false)
              as "tooStrong"
     from pg_roles where rolname = $1`,
    [name],
  );
  if (rows[0] === undefined) await createRole(client, name, password);
  if (rows[0]?.tooStrong) {
    const cure = 'name another role in DATABASE_URL, such as spool_app';
    throw new ConfigError(
      `The role "${name}" owns the tables, is a member of their owner, or is an administrator: ${cure}.`,
    );
  }
  return name;
}

async function createRole(client: PoolClient, name: string, password: string | null): Promise<void> {
  const secret = password === null ? '' : ` password ${escapeLiteral(password)}`;
  const statement = `create role ${escapeIdentifier(name)} login`;
  await client.query(statement + secret).catch((error: DatabaseError) => {
    if (EXISTS.has(error.code ?? '')) return; // A concurrent migration of another database created it.
    const cure = `let an administrator run: ${statement} password '…'`;
    throw new StartError(`The role "${name}" does not exist and cannot be created (${error.message}); ${cure}.`, {
      cause: error,
    });
  });
}

const EXISTS = new Set(['42710', '23505']);

/**
 * Grants a role the rights of a process and revokes all others in this schema. All or nothing.
 *
 * @throws StartError if it can still create tables, or change events or audit entries
 */
export async function grantRights(client: PoolClient, role: string): Promise<void> {
  await client.query('begin');
  try {
    const { rows } = await client.query<{ statement: string }>(GRANT_RIGHTS, [role]);
    for (const { statement } of rows) await client.query(statement);
    await refuseOtherRights(client, role);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw error;
  }
}

/** Throws if the role has other rights: from memberships, or in a schema that another role owns. */
async function refuseOtherRights(client: PoolClient, role: string): Promise<void> {
  const { rows } = await client.query<{ schema: string; mayCreate: boolean; mayChange: boolean }>(
    `select current_schema() as schema, has_schema_privilege($1, current_schema(), 'create') as "mayCreate",
            (select bool_or(has_table_privilege($1, name, 'delete, truncate, trigger')
                              or has_any_column_privilege($1, name, 'update'))
             from unnest(array['events', 'audit_entries', 'deleted_streams']) as name) as "mayChange"`,
    [role],
  );
  const { schema, mayCreate, mayChange } = rows[0]!;
  if (mayChange)
    throw new StartError(
      `The role "${role}" can change events or audit entries through another role; use another role.`,
    );
  if (!mayCreate) return;
  const cure = `let an administrator run: revoke create on schema ${schema} from public`;
  throw new StartError(`The role "${role}" can create tables in the schema ${schema}; ${cure}.`);
}
