import type { Client } from 'pg';
import { ulid } from 'ulid';
import { verify } from '#projections';
import { createTestDatabase, eventually, type TestDatabase } from '#testing';
import { readRole } from './database-role.ts';
import { migrate } from './migrate.ts';
import { addMessage, apply, connect, createThread, newRun, openProcess, type Process } from './store.testing.ts';

// Real: PostgreSQL, its roles, and the migrations.

let database: TestDatabase;
/** A connection with the role of processes, like that of an attacker with a stolen password. */
let client: Client;
let owner: Client;
let own: Process;

async function open(): Promise<void> {
  database = await createTestDatabase();
  client = await connect(database.url);
  owner = await connect(database.ownerUrl);
  own = await openProcess(database.url);
}

async function close(): Promise<void> {
  await own.close();
  await client.end();
  await owner.end();
  await database.drop();
}

beforeAll(open);
afterAll(close);

const codeOf = async (statement: string, values: unknown[] = []): Promise<string | undefined> =>
  client.query(statement, values).then(
    () => undefined,
    (error: { code?: string }) => error.code,
  );

async function newThread(): Promise<string> {
  const threadId = ulid();
  await apply(own.handler, { threadId, commands: [createThread(), addMessage('Hello', newRun())] });
  return threadId;
}

async function counted(threadId: string): Promise<{ events: number; streams: number }> {
  const { rows } = await owner.query<{ events: number; streams: number }>(
    `select (select count(*)::int from events where thread_id = $1) as events,
            (select count(*)::int from streams where thread_id = $1) as streams`,
    [threadId],
  );
  return rows[0]!;
}

const NOT_PERMITTED = '42501';
const UNIQUE_VIOLATION = '23505';
const NOT_SUPPORTED = '0A000';

const FORBIDDEN = [
  `update events set data = '{}'`,
  `update events set public = false where thread_id = 'x'`,
  'delete from events',
  'truncate events',
  `insert into events overriding system value select * from events on conflict (thread_id, version) do update set data = '{}'`,
  'select from events for update',
  `update audit_entries set actor_name = 'nobody'`,
  'delete from audit_entries',
  'truncate audit_entries',
  'truncate streams',
  `insert into deleted_streams (thread_hash) values ('x')`,
  'update deleted_streams set deleted_at = now()',
  'delete from deleted_streams',
  'truncate deleted_streams',
  'update policy_version set version = 1',
  `insert into migrations (timestamp, name) values (1, 'x')`,
  'delete from migrations',
  'create table mine (a int)',
  'create schema mine',
  `create function mine() returns int language sql as 'select 1'`,
  'alter table events add column mine int',
  'alter table events disable trigger all',
  'alter table events disable trigger events_not_deleted',
  'alter table audit_entries disable trigger audit_entries_append_only',
  'alter table events owner to current_user',
  'drop table events',
  'drop trigger audit_entries_append_only on audit_entries',
  'drop function delete_stream',
  'drop trigger events_not_deleted on events',
  'drop table deleted_streams',
  'create index mine on events (type)',
  `create rule mine as on insert to events do instead nothing`,
  `create trigger mine before insert on events for each row execute function refuse_audit_change()`,
  `create or replace function delete_stream(of_thread text, at_version integer) returns void language sql as 'select 1'`,
  'grant delete on events to current_user',
  `set session_replication_role = 'replica'`,
  'create role mine',
  'create table bullmq.mine (a int)',
  'drop table bullmq.job',
  'create sequence bullmq.mine',
];

test.each(FORBIDDEN)('the role of processes cannot run: %s', async (statement) => {
  const allowed = await codeOf(statement);
  // PostgreSQL only warns about a grant without the right to grant.
  if (statement.startsWith('grant')) expect(await codeOf('delete from events')).toBe(NOT_PERMITTED);
  else expect(allowed).toBe(NOT_PERMITTED);
});

test('the role of processes cannot become the owner', async () => {
  const { rows } = await owner.query<{ name: string }>('select current_user as name');
  expect(await codeOf(`set role ${rows[0]!.name}`)).toBe(NOT_PERMITTED);
  expect(await codeOf(`set session authorization ${rows[0]!.name}`)).toBe(NOT_PERMITTED);
});

test('the role of processes can delete a Thread with all its events, and no other Thread', async () => {
  const [threadId, other] = [await newThread(), await newThread()];
  expect(await own.store.deleteThread(threadId)).not.toBeNull();
  expect(await counted(threadId)).toEqual({ events: 0, streams: 0 });
  expect((await counted(other)).events).toBeGreaterThan(0);
  expect((await verify(own.pool)).findings).toEqual([]);
});

test('delete_stream refuses all but a whole Thread at its version', async () => {
  const threadId = await newThread();
  const before = await counted(threadId);
  for (const [of, at] of [
    [threadId, before.events - 1],
    [threadId, before.events + 1],
    [threadId, null],
    [threadId, 0],
    [null, before.events],
    [ulid(), before.events],
    ['%', before.events],
    ['', 0],
    [`' or true; --`, before.events],
  ]) {
    expect([of, at, await codeOf('select delete_stream($1, $2)', [of, at])]).toEqual([of, at, '22023']);
  }
  expect(await counted(threadId)).toEqual(before);
  expect(await codeOf('select delete_stream($1, $2)', [threadId, before.events])).toBeUndefined();
  expect(await counted(threadId)).toEqual({ events: 0, streams: 0 });
});

test('no events are stored under the id of a Thread that was deleted', async () => {
  const threadId = await newThread();
  await client.query('create temporary table kept as select * from events where thread_id = $1', [threadId]);
  await client.query('create temporary table kept_stream as select * from streams where thread_id = $1', [threadId]);
  await client.query(`update kept set data = '{}'`);
  expect(await own.store.deleteThread(threadId)).not.toBeNull();
  const restore = async (): Promise<(string | undefined)[]> => [
    await codeOf(`insert into events (thread_id, version, id, type, schema_version, data, public, occurred_at)
      select thread_id, version, id, type, schema_version, data, public, occurred_at from kept`),
    await codeOf('insert into streams select * from kept_stream on conflict do nothing'),
  ];
  expect(await restore()).toEqual([UNIQUE_VIOLATION, undefined]);
  // An empty temporary table of the same name, which comes first, does not help.
  await client.query('create temporary table deleted_streams (thread_hash bytea)');
  expect(await restore()).toEqual([UNIQUE_VIOLATION, undefined]);
  await client.query('discard temp');
  await client.query('delete from streams where thread_id = $1', [threadId]);
});

test('no events are stored under the id of a Thread that is deleted at the same time', async () => {
  const columns = 'thread_id, version, id, type, schema_version, data, public, occurred_at';
  const deleter = await own.pool.connect();
  try {
    for (const isolation of ['read committed', 'repeatable read']) {
      const threadId = await newThread();
      const { events: version } = await counted(threadId);
      await client.query('create temporary table kept as select * from events where thread_id = $1', [threadId]);
      await client.query(`begin isolation level ${isolation}`);
      await client.query('select count(*) from deleted_streams');
      await deleter.query('begin');
      await deleter.query('select delete_stream($1, $2)', [threadId, version]);
      const restored = codeOf(`insert into events (${columns}) select ${columns} from kept`);
      const isBlocked = async () => {
        const { rows } = await owner.query<{ count: number }>(
          `select count(*)::integer as count from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        );
        return rows[0]!.count === 1;
      };
      // The other level is refused without a wait.
      if (isolation === 'read committed') await eventually(isBlocked, { what: 'the insert waits for the deletion' });
      await deleter.query('commit');
      expect([isolation, await restored]).toEqual([
        isolation,
        isolation === 'read committed' ? UNIQUE_VIOLATION : NOT_SUPPORTED,
      ]);
      await client.query('rollback');
      await client.query('discard temp');
      expect(await counted(threadId)).toEqual({ events: 0, streams: 0 });
    }
  } finally {
    deleter.release();
  }
});

test('a create after the deletion of its Thread is refused', async () => {
  const threadId = await newThread();
  await own.store.deleteThread(threadId);
  expect(await own.handler.handle({ threadId, commands: [createThread()] })).toEqual({ outcome: 'conflict' });
  expect(await counted(threadId)).toEqual({ events: 0, streams: 0 });
});

test('a deleted Thread leaves a hash of its id, but not the id', async () => {
  const threadId = await newThread();
  await own.store.deleteThread(threadId);
  const { rows } = await owner.query<{ row: string; isKept: boolean }>(
    `select deleted_streams::text as row, thread_hash = sha256($1::text::bytea) as "isKept" from deleted_streams`,
    [threadId],
  );
  expect(rows.filter(({ isKept }) => isKept)).toHaveLength(1);
  expect(rows.filter(({ row }) => row.includes(threadId))).toEqual([]);
});

/** A function with the owner's rights must not use a table that the caller puts in its place. */
test.each([
  [
    'delete_stream',
    'streams',
    (threadId: string) => `select delete_stream('${threadId}', version) from streams where thread_id = '${threadId}'`,
  ],
  [
    'raise_policy_version',
    'policy_version',
    () => 'insert into memberships select o.id, p.id from organizations o, people p',
  ],
])('%s does not touch a temporary table of the caller', async (_, table, call) => {
  const threadId = await newThread();
  await owner.query(`insert into organizations (id, name) values ('${ulid()}', 'Acme')`);
  await owner.query(`insert into people (id, name) values ('${ulid()}', 'Ada')`);
  await client.query(`
    discard temp;
    create temporary table ${table} as select * from ${table};
    create or replace function pg_temp.become() returns trigger language plpgsql as
      $$ begin raise exception 'ran as %', current_user using errcode = 'ZZ001'; end $$;
    create trigger become before update or delete on pg_temp.${table} for each statement execute function pg_temp.become();
    create trigger become_too before update or delete on pg_temp.${table} for each row execute function pg_temp.become()`);
  expect(await codeOf(call(threadId))).toBeUndefined();
  await client.query('discard temp');
});

test('all functions with the rights of the owner have a fixed path that ends with pg_temp, and are closed to the public', async () => {
  const { rows } = await owner.query<{ name: string; config: string[]; open: boolean; trigger: boolean }>(
    `select proname as name, proconfig as config, has_function_privilege('public', oid, 'execute') as open,
            prorettype = 'trigger'::regtype as trigger
     from pg_proc where prosecdef and pronamespace in ('public'::regnamespace, 'bullmq'::regnamespace) order by name`,
  );
  expect(rows.map(({ name }) => name)).toEqual([
    ...['delete_stream', 'raise_policy_version', 'refuse_deleted_stream', 'spool_open_queue'],
  ]);
  for (const { config, open, trigger } of rows) {
    expect(config).toEqual([expect.stringMatching(/^search_path=(public|bullmq), pg_temp$/)]);
    expect(open && !trigger).toBe(false);
  }
});

test('readRole distinguishes the owner from the role of processes', async () => {
  expect(await readRole(client as never)).toMatchObject({
    isSuperuser: false,
    isOwner: false,
    mayCreate: false,
    mayChange: [],
  });
  expect(await readRole(owner as never)).toMatchObject({
    isOwner: true,
    mayChange: ['audit_entries', 'deleted_streams', 'events'],
  });
});

describe('readRole', () => {
  test.each(['update (data)', 'trigger', 'truncate'])('lists events for a role with the right to %s', async (right) => {
    await owner.query(`grant ${right} on events to public`);
    try {
      expect(await readRole(client as never)).toMatchObject({ mayChange: ['events'] });
    } finally {
      await owner.query(`revoke ${right} on events from public`);
    }
    expect(await readRole(client as never)).toMatchObject({ mayChange: [] });
  });
});

describe('a database that is not up to date', () => {
  // Each of these tests has its own database.
  beforeEach(async () => {
    await close();
    await open();
  });

  const forget = () => owner.query(`delete from migrations where name like 'ExternalRefs%'`);

  test('is refused for the role of processes, with one line that names the command to run', async () => {
    await forget();
    await expect(migrate(database.url)).rejects.toThrow(
      /^The database \S+ at \S+ needs 1 migrations, which the role "spool_test_app" cannot run: run spool migrate --owner-url .+\.$/,
    );
  });

  test('is refused if it is empty or the role has no rights', async () => {
    await owner.query('revoke select on migrations from spool_test_app');
    await expect(migrate(database.url)).rejects.toThrow(/does not let the role "spool_test_app" .+: run spool migrate/);
    await owner.query('drop schema public cascade; create schema public');
    await expect(migrate(database.url)).rejects.toThrow(/: run spool migrate --owner-url/);
  });

  test('is refused if the role lacks its rights on one table of this release, until the owner migrates again', async () => {
    const { rows: tables } = await owner.query<{ name: string }>(
      `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'v') order by name`,
    );
    expect(tables.length).toBeGreaterThan(20);
    for (const { name } of tables) {
      await owner.query(`revoke all on ${name} from spool_test_app`);
      const refused = name === 'migrations' ? /does not let the role/ : `access to ${name}: run spool migrate`;
      await expect(migrate(database.url).then(() => name)).rejects.toThrow(refused);
      if (name !== 'workers') await owner.query(`grant select on ${name} to spool_test_app`);
    }
    // As if the process had ended between the migrations and the grants.
    expect(await migrate(database.ownerUrl)).toEqual([]);
    expect(await migrate(database.url)).toEqual([]);
    expect(await codeOf('delete from workers')).toBeUndefined();
    await owner.query('revoke execute on function delete_stream from spool_test_app');
    await expect(migrate(database.url)).rejects.toThrow(/access to delete_stream: run spool migrate/);
  });

  test('is accepted with a table that an operator added', async () => {
    await owner.query('create table copy_of_events as select * from events');
    expect(await migrate(database.url)).toEqual([]);
  });

  test('is migrated by the owner, who grants known roles their rights on new tables', async () => {
    await owner.query('drop schema public cascade; create schema public');
    await migrate(database.ownerUrl, database.url);
    expect(await migrate(database.url)).toEqual([]);
    await newThread();
    // As if a later release had added a table and a view.
    await owner.query('create table later (id text); create view later_events as select * from events');
    await owner.query(`delete from migrations where name = 'RunLists1763700000008'`);
    expect(await migrate(database.ownerUrl)).toEqual(['RunLists1763700000008']);
    expect(await codeOf(`insert into later values ('x')`)).toBeUndefined();
    expect(await codeOf('select from later_events')).toBeUndefined();
    expect(await codeOf('delete from later_events')).toBe(NOT_PERMITTED);
    expect(await codeOf('delete from events')).toBe(NOT_PERMITTED);
  });
});

describe('the role of processes', () => {
  const named = (user: string, password = ''): string => {
    const url = new URL(database.url);
    Object.assign(url, { username: user, password });
    return url.href;
  };

  test('is created with the password of the URL if it is missing', async () => {
    const name = `spool_test_${ulid().toLowerCase()}`;
    try {
      await migrate(database.ownerUrl, named(name, `it's "secret"`));
      const { rows } = await owner.query<{ login: boolean; strong: boolean; password: string }>(
        `select rolcanlogin as login, rolsuper or rolcreaterole or rolcreatedb or rolbypassrls as strong, rolpassword as password
         from pg_authid where rolname = $1`,
        [name],
      );
      expect(rows).toEqual([
        { login: true, strong: false, password: expect.stringMatching(/^SCRAM-SHA-256/) as string },
      ]);
    } finally {
      await owner.query(`drop owned by ${name}; drop role ${name}`);
    }
  });

  test('must not be the owner or a member of the owner', async () => {
    const { rows } = await owner.query<{ name: string }>('select current_user as name');
    await expect(migrate(database.ownerUrl, named(rows[0]!.name))).rejects.toThrow(/name another role in DATABASE_URL/);
    const name = `spool_test_${ulid().toLowerCase()}`;
    await owner.query(`create role ${name} login noinherit in role ${rows[0]!.name}`);
    try {
      await expect(migrate(database.ownerUrl, named(name))).rejects.toThrow(/name another role in DATABASE_URL/);
    } finally {
      await owner.query(`drop role ${name}`);
    }
  });

  test('must have a name', async () => {
    await expect(migrate(database.ownerUrl, named(''))).rejects.toThrow('DATABASE_URL has no user');
  });

  test.each([
    ['events', 'update'],
    ['events', 'update (data)'],
    ['events', 'trigger'],
    ['audit_entries', 'update'],
    ['audit_entries', 'update (details)'],
    ['deleted_streams', 'delete'],
  ])('must not inherit a right on %s from another role: %s', async (table, right) => {
    const [name, group] = [1, 2].map((n) => `spool_test_${n}_${ulid().toLowerCase()}`) as [string, string];
    await owner.query(
      `create role ${group}; grant ${right} on ${table} to ${group}; create role ${name} login in role ${group}`,
    );
    try {
      await expect(migrate(database.ownerUrl, named(name))).rejects.toThrow(
        /can change events or audit entries through another role/,
      );
    } finally {
      await owner.query(`drop role ${name}; drop owned by ${group}; drop role ${group}`);
    }
  });

  test('loses the right to create tables that older databases grant to public', async () => {
    await owner.query('grant create on schema public to public');
    expect((await readRole(client as never)).mayCreate).toBe(true);
    await migrate(database.ownerUrl, database.url);
    expect((await readRole(client as never)).mayCreate).toBe(false);
  });
});
