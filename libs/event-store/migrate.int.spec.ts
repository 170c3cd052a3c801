import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from 'pg';
import { createTestDatabase, eventually, type TestDatabase } from '#testing';
import { migrate } from './migrate.ts';
import { connect } from './store.testing.ts';

// Real: PostgreSQL, TypeORM's migrations.

let database: TestDatabase;
let client: Client;

beforeEach(async () => {
  database = await createTestDatabase();
  client = await connect(database.ownerUrl);
  await client.query('drop schema public cascade; create schema public');
});

afterEach(async () => {
  await client.end();
  await database.drop();
});

const lines = async (query: string): Promise<string[]> => {
  const { rows } = await client.query<{ line: string }>(query);
  return rows.map(({ line }) => line);
};

/** Describes our tables with columns, constraints, indexes, settings and triggers, alike on PostgreSQL 15 to 18. */
async function describeSchema(): Promise<string> {
  const ours = `c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname <> 'migrations'`;
  const columns = `
    select format('%s.%s %s%s%s%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                  case when l.collname <> 'default' then ' collate ' || l.collname end,
                  case when a.attnotnull then ' not null' end,
                  coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid),
                           case a.attidentity when 'a' then ' generated always as identity' end)) as line
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    left join pg_collation l on l.oid = a.attcollation
    where ${ours} order by c.relname, a.attnum`;
  const constraints = `
    select format('%s: %s %s', c.relname, k.conname, pg_get_constraintdef(k.oid)) as line
    from pg_class c join pg_constraint k on k.conrelid = c.oid and k.contype in ('c', 'f', 'p', 'u')
    where ${ours} order by c.relname, k.conname`;
  const indexes = `
    select pg_get_indexdef(i.indexrelid) as line
    from pg_class c join pg_index i on i.indrelid = c.oid
    where ${ours} order by 1`;
  const settings = `
    select format('%s: %s', c.relname, array_to_string(c.reloptions, ', ')) as line
    from pg_class c where ${ours} and c.reloptions is not null order by 1`;
  const triggers = `
    select pg_get_triggerdef(t.oid) as line
    from pg_class c join pg_trigger t on t.tgrelid = c.oid and not t.tgisinternal
    where ${ours} order by 1`;
  const parts = [columns, constraints, indexes, settings, triggers];
  const described: string[] = [];
  for (const part of parts) described.push((await lines(part)).join('\n'));
  return described.join('\n\n');
}

test('migrating an empty database creates the released schema; a change needs a new migration', async () => {
  await migrate(database.ownerUrl);
  expect(await describeSchema()).toMatchSnapshot();
});

test('migrating again changes nothing', async () => {
  await migrate(database.ownerUrl);
  const before = [await describeSchema(), await lines('select name as line from migrations order by id')];
  await migrate(database.ownerUrl);
  expect([await describeSchema(), await lines('select name as line from migrations order by id')]).toEqual(before);
});

test('four processes that start together migrate one after the other', async () => {
  await Promise.all([1, 2, 3, 4].map(() => migrate(database.ownerUrl)));
  const names = await lines('select name as line from migrations');
  expect(names.length).toBeGreaterThan(0);
  expect(new Set(names).size).toBe(names.length);
  const locks = `select 'lock' as line from pg_locks l join pg_database d on d.oid = l.database
                 where l.locktype = 'advisory' and d.datname = current_database()`;
  await eventually(async () => (await lines(locks)).length === 0, { what: 'the lock is given back' });
});

test.each([
  ['RunLists1763700000008', 'run_summaries_%'],
  ['ExternalRefIndices1763700000013', 'thread_summaries_%ref%'],
  ['FileIndices1763700000015', 'files_%'],
  ['StopIndex1763700000019', 'events_stops'],
  ['RequestIndex1763700000020', 'events_requests'],
])('%s keeps indices that an operator built beforehand', async (name, pattern) => {
  await migrate(database.ownerUrl);
  const before = await describeSchema();
  const built = () => lines(`select oid::text as line from pg_class where relname like '${pattern}' order by 1`);
  const indices = await built();
  expect(indices.length).toBeGreaterThan(0);
  await client.query(`delete from migrations where name = '${name}'`);
  await migrate(database.ownerUrl);
  expect([await describeSchema(), await built()]).toEqual([before, indices]);
  expect(await lines('select name as line from migrations')).toContain(name);
});

test.each([
  [
    'ExternalRefIndices1763700000013',
    'thread_summaries',
    'thread_summaries_external_ref, thread_summaries_by_reference',
  ],
  ['FileIndices1763700000015', 'files', 'files_uncounted, files_lost'],
  ['StopIndex1763700000019', 'events', 'events_stops'],
  ['RequestIndex1763700000020', 'events', 'events_requests'],
])('%s does not block reads of %s, and runs while a reader holds the table', async (name, table, indices) => {
  await migrate(database.ownerUrl);
  await client.query(`drop index ${indices}`);
  await client.query(`delete from migrations where name = '${name}'`);
  // An open read blocks every statement that would block reads.
  await client.query(`begin; select from ${table} limit 1`);
  expect(await migrate(database.ownerUrl)).toEqual([name]);
  await client.query('commit');
});

test('the columns and indices of files may exist before the migration', async () => {
  await migrate(database.ownerUrl);
  const before = await describeSchema();
  await client.query(`
    drop trigger files_organization on files; drop trigger files_added on files; drop trigger files_changed on files;
    drop trigger files_removed on files; drop function set_file_organization, count_files; drop view file_quotas;
    drop table file_usage; alter table organizations drop column max_files, drop column max_file_bytes;
    delete from migrations where name like 'File%' and name <> 'Files1763700000002'`);
  expect(await migrate(database.ownerUrl)).toEqual(['FileUsage1763700000014', 'FileIndices1763700000015']);
  expect(await describeSchema()).toBe(before);
});

test('no migration that locks out the readers of a table builds an index on it, except on new tables', async () => {
  const folder = join(import.meta.dirname, 'migrations');
  const found: string[] = [];
  for (const name of (await readdir(folder)).filter((file) => file.endsWith('.sql'))) {
    const text = await readFile(join(folder, name), 'utf8');
    for (const [, table = ''] of text.matchAll(/^alter table (\w+)\s+(?:add|alter) column/gm)) {
      const builds = new RegExp(`^create (unique )?index [^;]*\\bon ${table}\\b`, 'm').test(text);
      if (builds) found.push(`${name}: ${table}`);
    }
  }
  // These are released. All later ones build their indices in a separate migration.
  expect(found.filter((line) => line > '0011')).toEqual([]);
});
