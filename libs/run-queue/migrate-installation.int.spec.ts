import { Client } from 'pg';
import { ulid } from 'ulid';
import { migrate, readRole } from '#event-store';
import { ADVISORY_LOCKS, ConfigError, StartError } from '#platform';
import { createTestDatabase, type TestDatabase } from '#testing';
import { migrateInstallation } from './migrate-installation.ts';
import { prepareQueue } from './migrate-queue.ts';

// Real: PostgreSQL, its roles, the migrations, and BullMQ's schema.

let database: TestDatabase;
let admin: Client;
const roles: string[] = [];

beforeEach(async () => {
  database = await createTestDatabase();
  admin = await connect(database.ownerUrl);
  await admin.query('drop schema public cascade; drop schema bullmq cascade');
});

afterEach(async () => {
  await admin.end();
  await database.drop();
  const server = await connect(withPart(database.ownerUrl, { pathname: '/postgres' }));
  for (const role of roles.splice(0)) await server.query(`drop role if exists ${role}`);
  await server.end();
});

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  return client;
}

function withPart(url: string, part: { pathname?: string; username?: string }): string {
  return Object.assign(new URL(url), part).href;
}

/** Returns a free name and its URL. The role, once it exists, has the administrator's password, as the URL does. */
function newRole(): { name: string; url: string } {
  const name = `spool_test_${ulid().toLowerCase()}`;
  roles.push(name);
  return { name, url: withPart(database.ownerUrl, { username: name }) };
}

const createRole = (name: string) =>
  admin.query(`create role ${name} login password '${new URL(database.ownerUrl).password}'`);

/** Creates an owner of the database alone, as on most managed services. */
async function newOwner(): Promise<{ name: string; url: string }> {
  const owner = newRole();
  await createRole(owner.name);
  const { rows } = await admin.query<{ name: string }>('select current_database() as name');
  await admin.query(`alter database ${rows[0]!.name} owner to ${owner.name}`);
  await admin.query(`create schema public authorization ${owner.name}`);
  return owner;
}

async function roleOf(url: string) {
  const client = await connect(url);
  try {
    return await readRole(client);
  } finally {
    await client.end();
  }
}

async function codeOf(url: string, statement: string): Promise<string | undefined> {
  const client = await connect(url);
  try {
    await client.query(statement);
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code;
  } finally {
    await client.end();
  }
}

const RESTRICTED = { isSuperuser: false, isOwner: false, mayCreate: false, mayChange: [] };

test('adds a second role to an installation that runs as its owner, while the previous release continues as the owner', async () => {
  const [owner, app] = [await newOwner(), newRole()];
  // The state after the previous release.
  await migrate(owner.url);
  await prepareQueue(owner.url, 'spool-runs');
  const upgrade = () => migrateInstallation({ ownerUrl: owner.url, appUrl: app.url });
  // An owner that cannot create roles gets the statement for an administrator.
  await expect(upgrade()).rejects.toThrow(`let an administrator run: create role "${app.name}" login password`);
  await createRole(app.name);
  expect(await upgrade()).toEqual([]);
  expect(await roleOf(app.url)).toEqual({ name: app.name, owner: owner.name, ...RESTRICTED });
  expect(await migrate(app.url)).toEqual([]);
  await prepareQueue(app.url, 'spool-runs');
  expect(await codeOf(app.url, 'delete from events')).toBe('42501');
  expect(await codeOf(app.url, `select delete_stream('', 1)`)).toBe('22023');
  expect(await codeOf(app.url, 'delete from bullmq.job')).toBeUndefined();
  // The previous release migrates when it starts, and deletes events itself.
  expect(await migrate(owner.url)).toEqual([]);
  await prepareQueue(owner.url, 'spool-runs');
  expect(await codeOf(owner.url, 'delete from events')).toBeUndefined();
});

test('an owner that may create roles creates the role of processes, and may repeat the migration', async () => {
  const [owner, app] = [await newOwner(), newRole()];
  await admin.query(`alter role ${owner.name} createrole`);
  const upgrade = () => migrateInstallation({ ownerUrl: owner.url, appUrl: app.url });
  expect((await upgrade()).length).toBeGreaterThan(0);
  expect(await upgrade()).toEqual([]);
  expect(await roleOf(app.url)).toEqual({ name: app.name, owner: owner.name, ...RESTRICTED });
  expect(await migrate(app.url)).toEqual([]);
  await prepareQueue(app.url, 'spool-runs');
  // Processes that start at the same time create the same sequence.
  for (let queue = 0; queue < 5; queue++)
    await Promise.all(Array.from({ length: 8 }, () => prepareQueue(app.url, `queue-${queue}`)));
});

test('does not wait for the leaders of running workers', async () => {
  const [owner, app] = [await newOwner(), newRole()];
  await createRole(app.name);
  for (const leader of ['dispatcher', 'reaper', 'housekeeping'] as const)
    await admin.query('select pg_advisory_lock($1)', [ADVISORY_LOCKS[leader]]);
  expect((await migrateInstallation({ ownerUrl: owner.url, appUrl: app.url })).length).toBeGreaterThan(0);
  await admin.query('select pg_advisory_unlock_all()');
});

test('a second role of processes leaves the first one its rights, so a password can be replaced without a stop', async () => {
  const [owner, first, second] = [await newOwner(), newRole(), newRole()];
  for (const { name, url } of [first, second]) {
    await createRole(name);
    await migrateInstallation({ ownerUrl: owner.url, appUrl: url });
  }
  for (const { name, url } of [first, second]) {
    expect(await roleOf(url)).toEqual({ name, owner: owner.name, ...RESTRICTED });
    expect(await codeOf(url, 'select from streams; delete from run_work; delete from bullmq.job')).toBeUndefined();
  }
  await admin.query(`drop owned by ${first.name}; drop role ${first.name}`);
  expect(await migrate(second.url)).toEqual([]);
});

test('refuses a DATABASE_URL that names another database, or the owner, before there are tables', async () => {
  const [owner, app] = [await newOwner(), newRole()];
  await createRole(app.name);
  const migrateWith = (appUrl: string) => migrateInstallation({ ownerUrl: owner.url, appUrl });
  const another = migrateWith(withPart(app.url, { pathname: '/another' }));
  await expect(another).rejects.toThrow(ConfigError);
  await expect(another).rejects.toThrow(
    /^The owner's URL names the database "\w+" and DATABASE_URL names "another"; name the same database in both\.$/,
  );
  const itself = migrateWith(owner.url);
  await expect(itself).rejects.toThrow(ConfigError);
  await expect(itself).rejects.toThrow(
    /^The role "\w+" owns the tables, is a member .*: name another role in DATABASE_URL, such as spool_app\.$/,
  );
  expect((await admin.query(`select from pg_class where relname = 'events'`)).rowCount).toBe(0);
});

test('prepares a queue in the same database under another name of its server, but not a queue in another database', async () => {
  const [owner, app] = [await newOwner(), newRole()];
  await createRole(app.name);
  const named = new URL(app.url);
  const alias = new URL(app.url);
  alias.hostname = named.hostname === 'localhost' ? '127.0.0.1' : 'localhost';
  const other = withPart(app.url, { pathname: '/postgres' });
  const migrateWith = (queueUrl: string) => migrateInstallation({ ownerUrl: owner.url, appUrl: app.url, queueUrl });
  const hasQueue = async () => (await admin.query(`select from pg_namespace where nspname = 'bullmq'`)).rowCount === 1;
  await migrateWith(other);
  expect(await hasQueue()).toBe(false);
  await migrateWith(alias.href);
  expect(await hasQueue()).toBe(true);
  await prepareQueue(alias.href, 'spool-runs');
  alias.port = '1';
  await expect(migrateWith(alias.href)).rejects.toThrow(StartError);
});

test('refuses an administrator that does not own the tables, and changes no owner', async () => {
  const [owner, app] = [await newOwner(), newRole()];
  await createRole(app.name);
  const upgrade = (ownerUrl: string) => migrateInstallation({ ownerUrl, appUrl: app.url });
  await upgrade(owner.url);
  await admin.query(`drop table deleted_streams cascade; drop function delete_stream, refuse_deleted_stream cascade;
    delete from migrations where name like 'DatabaseRoles%'`);
  const refusal = new RegExp(
    `has tables owned by the role "${owner.name}", not by "\\w+": run spool migrate --owner-url with the URL of its owner\\.$`,
  );
  await expect(upgrade(database.ownerUrl)).rejects.toThrow(refusal);
  await expect(migrate(database.ownerUrl)).rejects.toThrow(refusal);
  expect(await upgrade(owner.url)).toEqual(['DatabaseRoles1763700000016']);
  // Without a pending migration, the administrator cannot grant either. A process with this role starts.
  await expect(upgrade(database.ownerUrl)).rejects.toThrow(refusal);
  expect(await migrate(database.ownerUrl)).toEqual([]);
  const { rows } = await admin.query<{ owners: string }>(
    `select string_agg(distinct pg_get_userbyid(relowner), ' ') as owners
     from pg_class where relnamespace in ('public'::regnamespace, 'bullmq'::regnamespace)`,
  );
  expect(rows).toEqual([{ owners: owner.name }]);
  expect(await codeOf(app.url, `select delete_stream('', 1)`)).toBe('22023');
});
