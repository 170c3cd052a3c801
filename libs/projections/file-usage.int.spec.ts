import type { PoolClient } from 'pg';
import { ulid } from 'ulid';
import { ADVISORY_LOCKS } from '#platform';
import { findUsageDrift, repairUsage } from './file-usage.ts';
import { openFixture, seedThread, type Fixture } from './threads.testing.ts';

// Real: PostgreSQL, and the triggers that count files.

const PAGE = 2;

let on: Fixture;
let client: PoolClient;
let threads: { threadId: string; organizationId: string }[];

beforeEach(async () => {
  on = await openFixture();
  client = await on.pool.connect();
  threads = [];
  for (let i = 0; i < 2; i++) {
    const { threadId } = await seedThread(on, 'completed');
    const find = 'select organization_id as "organizationId" from thread_summaries where thread_id = $1';
    const { rows } = await on.admin.query<{ organizationId: string }>(find, [threadId]);
    threads.push({ threadId, organizationId: rows[0]!.organizationId });
  }
});

afterEach(async () => {
  client.release();
  await on.close();
});

async function addFile(threadId: string, size: number): Promise<string> {
  const id = ulid();
  await on.admin.query(
    `insert into files (id, thread_id, kind, name, size, sha256, blob_key) values ($1, $2, 'artifact', '', $3, '', '')`,
    [id, threadId, size],
  );
  return id;
}

const setCounter = (organizationId: string, files: number, bytes: number) =>
  on.admin.query('update file_usage set files = $2, bytes = $3 where organization_id = $1', [
    organizationId,
    files,
    bytes,
  ]);

test('counts all files over pages, except files without an organization', async () => {
  const [one, other] = [threads[0]!, threads[1]!];
  for (let i = 1; i <= 5; i++) await addFile(i % 2 === 0 ? one.threadId : other.threadId, i);
  await addFile('GONE', 100);
  expect(await findUsageDrift(client, PAGE)).toEqual([]);
  await setCounter(one.organizationId, 9, 9);
  const drift = { organizationId: one.organizationId, files: 9, bytes: 9, actualFiles: 2, actualBytes: 6 };
  expect(await findUsageDrift(client, PAGE)).toEqual([drift]);
  expect(await repairUsage(client, PAGE)).toBe(1);
  expect(await findUsageDrift(client, PAGE)).toEqual([]);
});

test('reads no more than a page of files in one statement', async () => {
  for (let i = 0; i < 5; i++) await addFile(threads[0]!.threadId, 1);
  const sent: unknown[] = [];
  const watched = { query: (...args: unknown[]) => (sent.push(args[0]), client.query(...(args as [string]))) };
  await findUsageDrift(watched as never, PAGE);
  const limits = sent.flatMap((statement) => (statement as { values?: unknown[] }).values?.[1] ?? []);
  // The last page is empty.
  expect(limits).toEqual([PAGE, PAGE, PAGE, PAGE]);
});

test('corrects a counter without waiting for a writer of files, and keeps the change of that writer', async () => {
  const { threadId, organizationId } = threads[0]!;
  await addFile(threadId, 1);
  await setCounter(organizationId, 9, 9);
  await on.admin.query('begin');
  await addFile(threadId, 10);
  // The writer holds the counter's row.
  expect(await findUsageDrift(client)).toMatchObject([{ files: 9, actualFiles: 1 }]);
  const repaired = repairUsage(client);
  await on.admin.query('commit');
  expect(await repaired).toBe(1);
  expect(await findUsageDrift(client)).toEqual([]);
});

test('two concurrent repairs correct a counter once', async () => {
  const { threadId, organizationId } = threads[0]!;
  await addFile(threadId, 1);
  await setCounter(organizationId, 9, 9);
  await on.admin.query('select pg_advisory_lock($1)', [ADVISORY_LOCKS.fileUsage]);
  expect(await repairUsage(client)).toBe(0);
  await on.admin.query('select pg_advisory_unlock($1)', [ADVISORY_LOCKS.fileUsage]);
  expect(await repairUsage(client)).toBe(1);
  expect(await findUsageDrift(client)).toEqual([]);
});

test('counters stay correct and writers do not fail while repairs run', async () => {
  const { threadId, organizationId } = threads[0]!;
  await setCounter(organizationId, 5, 5);
  const write = async (): Promise<void> => {
    for (let i = 0; i < 30; i++) {
      const id = await addFile(threadId, i);
      if (i % 3 === 0) await on.admin.query('delete from files where id = $1', [id]);
      if (i % 10 === 0)
        await on.admin.query('update file_usage set files = files + 1 where organization_id = $1', [organizationId]);
    }
  };
  const writing = write();
  for (let i = 0; i < 10; i++) await repairUsage(client, PAGE);
  await writing;
  await repairUsage(client, PAGE);
  expect(await findUsageDrift(client, PAGE)).toEqual([]);
});
