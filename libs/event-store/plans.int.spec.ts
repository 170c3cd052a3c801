import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { PoolClient } from 'pg';
import { namedStatement } from '#platform';
import { withColumns } from '#projections';
import { apply, idleThread, openFixture, record, runningThread, type Fixture } from './store.testing.ts';

// A connection plans a statement once, maybe when a table is empty or has one page, and keeps the plan until the next ANALYZE.
// So the plan for a small table must suit a large one too: it must look up by key.

let on: Fixture;
let client: PoolClient;

beforeEach(async () => {
  on = await openFixture();
  client = await on.pool.connect();
  await client.query('set plan_cache_mode = force_generic_plan');
});

afterEach(async () => {
  client.release();
  await on.close();
});

/** Statements that read a whole table or walk an index. Each has its own spec, or explains why. */
const WALKS = [
  'find-due-runs',
  'find-ready-runs',
  'find-slots-in-use',
  'wake-delayed-runs',
  'read-controls',
  'read-installation',
  'resume-queue',
  'find-limited-organizations',
];

const folders = ['event-store', 'run-queue', 'run-engine'].map((lib) => join(import.meta.dirname, '..', lib));
const statements = folders.flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.sql') && !WALKS.includes(name.slice(0, -'.sql'.length)))
    .map((name) => join(folder, name)),
);

/** Returns the lines of the statement's plan that read a table without a key. */
async function findScans(path: string): Promise<string[]> {
  const { text } = withColumns(namedStatement(dirname(path), basename(path)));
  const parameters = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)));
  await client.query(`prepare statement as ${text}`);
  const nulls = parameters > 0 ? `(${Array.from({ length: parameters }, () => 'null').join(', ')})` : '';
  const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain execute statement ${nulls}`);
  await client.query('deallocate statement');
  const lines = rows.map((row) => row['QUERY PLAN']);
  const isScan = (line: string, i: number) =>
    (line.includes('Seq Scan') && !line.includes(' on queue_controls ')) || // of a few rows
    (/Index (Only )?Scan/.test(line) && !lines[i + 1]?.includes('Index Cond'));
  return lines.filter(isScan).map((line) => `${basename(path)}: ${line.trim()}`);
}

test('no statement scans a table after planning on empty tables', async () => {
  expect(statements.map((path) => basename(path))).toContain('append.sql');
  for (const path of statements) expect(await findScans(path)).toEqual([]);
});

test('no statement scans a table after planning on tables with some rows', async () => {
  for (let i = 0; i < 20; i++) {
    const { thread, fence } = await runningThread(on);
    await apply(on.handler, { threadId: thread.threadId, commands: [record(fence)] });
    await idleThread(on);
    await on.admin.query(`insert into unclaimed_blobs values ('blob ${i}', now())`);
    await on.admin.query(
      `insert into files (id, thread_id, kind, name, size, sha256, blob_key, folder_id, path)
       values ($1, $2, 'artifact', 'a', 1, '', $1, $3, $1)`,
      [`file ${i}`, thread.threadId, `folder ${i % 3}`],
    );
    await on.admin.query(`insert into idempotency_keys (token_id, key, fingerprint, file_id, status, body)
                          values ('token', 'key ${i}', '', 'file ${i}', 201, '')`);
  }
  await on.admin.query('analyze');
  for (const path of statements) expect(await findScans(path)).toEqual([]);
});
