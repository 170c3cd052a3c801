import { ulid } from 'ulid';
import { nameOf, type LoadedThread } from '#event-store';
import { blockedBackends, idleThread, openFixture, type Fixture } from '../event-store/store.testing.ts';
import type { FileChanges } from './file-changes.ts';
import { FileStore } from './file-store.ts';
import type { PreparedFile } from './store-file.ts';

// Real: PostgreSQL. A trigger counts the files, so these tests add and remove files in every way.

let on: Fixture;

beforeEach(async () => {
  on = await openFixture();
});

afterEach(() => on.close());

/** Returns a file whose bytes were stored. Does not use `on.admin`, which may be in a transaction. */
async function newFile(size: number): Promise<PreparedFile> {
  const id = ulid();
  await on.pool.query(`insert into unclaimed_blobs values ($1, now() + interval '1 hour')`, [id]);
  return { id, run_id: null, kind: 'attachment', name: 'a', mime_type: null, size, sha256: 'sum', blob_key: id };
}

async function attach(thread: LoadedThread, changes: FileChanges, files = new FileStore(on.pool)) {
  const result = await on.handler.handle({
    threadId: thread.threadId,
    commands: [{ type: 'attach_file', fileId: 'F' }],
    hook: () => files.inAppend(changes),
  });
  return nameOf(result);
}

const organizationOf = (thread: LoadedThread) => thread.summaries.thread!.organization_id;

async function setQuota(thread: LoadedThread, maxFiles: number | null, maxBytes: number | null): Promise<void> {
  await on.admin.query('insert into organizations (id, name, max_files, max_file_bytes) values ($1, $1, $2, $3)', [
    organizationOf(thread),
    maxFiles,
    maxBytes,
  ]);
}

async function usage(thread: LoadedThread): Promise<[number, number]> {
  const { rows } = await on.admin.query<{ files: string; bytes: string }>(
    'select files, bytes from file_usage where organization_id = $1',
    [organizationOf(thread)],
  );
  return [Number(rows[0]?.files ?? 0), Number(rows[0]?.bytes ?? 0)];
}

async function recount(thread: LoadedThread): Promise<[number, number]> {
  const { rows } = await on.admin.query<{ files: string; bytes: string }>(
    'select count(*) as files, coalesce(sum(size), 0) as bytes from files where organization_id = $1',
    [organizationOf(thread)],
  );
  return [Number(rows[0]!.files), Number(rows[0]!.bytes)];
}

const folderOf = (
  thread: LoadedThread,
  changes: NonNullable<FileChanges['folder']>['changes'],
): NonNullable<FileChanges['folder']> => ({ folderId: thread.threadId, changes, maxFiles: 100, maxBytes: 1_000 });

test('counts files that are added, replaced, removed, and deleted with their Thread', async () => {
  const thread = await idleThread(on);
  const [first, second] = [await newFile(3), await newFile(4)];
  expect(await attach(thread, { added: [first, second] })).toBe('appended');
  expect(await usage(thread)).toEqual([2, 7]);
  const placed = await newFile(10);
  await attach(thread, { folder: folderOf(thread, [{ does: 'add', path: 'a', basedOn: null, file: placed }]) });
  expect(await usage(thread)).toEqual([3, 17]);
  const newer = await newFile(1);
  await attach(thread, {
    folder: folderOf(thread, [{ does: 'replace', path: 'a', basedOn: placed.blob_key, file: newer }]),
  });
  expect(await usage(thread)).toEqual([3, 8]);
  await attach(thread, { removed: [first.id] });
  expect(await usage(thread)).toEqual([2, 5]);
  expect(await usage(thread)).toEqual(await recount(thread));
  await on.store.deleteThread(thread.threadId);
  expect(await usage(thread)).toEqual([0, 0]);
});

test('a refused append counts nothing', async () => {
  const thread = await idleThread(on);
  expect(await attach(thread, { added: [await newFile(3), { ...(await newFile(3)), blob_key: 'swept' }] })).toBe(
    'files_refused',
  );
  expect(await usage(thread)).toEqual([0, 0]);
});

test.each([
  ['files', 2, null],
  ['bytes', null, 6],
])('an append beyond the quota of %s is refused as a whole, but not one that frees room', async (_, files, bytes) => {
  const thread = await idleThread(on);
  await setQuota(thread, files, bytes);
  const kept = [await newFile(3), await newFile(3)];
  expect(await attach(thread, { added: kept })).toBe('appended');
  const version = (await on.store.load(thread.threadId))!.version;
  const more = await newFile(1);
  expect(await attach(thread, { added: [more] })).toBe('quota_full');
  const change = { does: 'add' as const, path: 'a', basedOn: null, file: more };
  expect(await attach(thread, { folder: folderOf(thread, [change]) })).toBe('quota_full');
  expect((await on.store.load(thread.threadId))!.version).toBe(version);
  expect(await usage(thread)).toEqual([2, 6]);
  expect(await attach(thread, { removed: [kept[0]!.id] })).toBe('appended');
  expect(await attach(thread, { added: [more] })).toBe('appended');
});

test('a file over the quota can become smaller, but not larger', async () => {
  const thread = await idleThread(on);
  const first = await newFile(10);
  await attach(thread, { folder: folderOf(thread, [{ does: 'add', path: 'a', basedOn: null, file: first }]) });
  await setQuota(thread, 0, 5);
  const replace = async (basedOn: PreparedFile, size: number) => {
    const file = await newFile(size);
    const folder = folderOf(thread, [{ does: 'replace', path: 'a', basedOn: basedOn.blob_key, file }]);
    return { file, outcome: await attach(thread, { folder }) };
  };
  expect((await replace(first, 11)).outcome).toBe('quota_full');
  const { file: second, outcome } = await replace(first, 8);
  expect(outcome).toBe('appended');
  const { file: third, outcome: same } = await replace(second, 8);
  expect(same).toBe('appended');
  expect(await usage(thread)).toEqual([1, 8]);
  // Replaces a file by another of fewer bytes.
  const [other, fourth] = [await newFile(2), await newFile(1)];
  const folder = folderOf(thread, [
    { does: 'remove', path: 'a', basedOn: third.blob_key, file: null },
    { does: 'add', path: 'b', basedOn: null, file: other },
  ]);
  expect(await attach(thread, { folder })).toBe('appended');
  expect(await attach(thread, { added: [fourth], removed: [other.id] })).toBe('appended');
  expect(await usage(thread)).toEqual([1, 1]);
  expect(await attach(thread, { added: [await newFile(1), await newFile(0)], removed: [fourth.id] })).toBe(
    'quota_full',
  );
});

test('the quota of the installation applies if the organization has none', async () => {
  const [thread, other] = [await idleThread(on), await idleThread(on)];
  await setQuota(other, 100, null);
  const files = new FileStore(on.pool, { maxFiles: 1, maxBytes: null });
  expect(await attach(thread, { added: [await newFile(1)] }, files)).toBe('appended');
  expect(await attach(thread, { added: [await newFile(1)] }, files)).toBe('quota_full');
  expect(await attach(other, { added: [await newFile(1), await newFile(1)] }, files)).toBe('appended');
});

test('one of two appends that exceed the quota together is refused', async () => {
  const first = await idleThread(on);
  const second = await idleThread(on);
  // Two Threads of one organization.
  await on.admin.query('update thread_summaries set organization_id = $2 where thread_id = $1', [
    second.threadId,
    organizationOf(first),
  ]);
  second.summaries.thread!.organization_id = organizationOf(first);
  await setQuota(first, null, 5);
  await attach(first, { added: [await newFile(1)] });
  // Both have added their files before either is committed.
  await on.admin.query('begin');
  await on.admin.query('select from file_usage where organization_id = $1 for update', [organizationOf(first)]);
  const both = [attach(first, { added: [await newFile(3)] }), attach(second, { added: [await newFile(3)] })];
  await blockedBackends(on.admin, 2);
  await on.admin.query('commit');
  expect((await Promise.all(both)).toSorted()).toEqual(['appended', 'quota_full']);
  expect(await usage(first)).toEqual([2, 4]);
  expect(await recount(first)).toEqual([2, 4]);
});

test('concurrent appends, deletions and statements over all organizations neither deadlock nor drift', async () => {
  const threads = await Promise.all(Array.from({ length: 4 }, () => idleThread(on)));
  const work = async (thread: LoadedThread): Promise<void> => {
    for (let i = 0; i < 10; i++) {
      const file = await newFile(2);
      await attach(thread, { added: [file] });
      if (i % 3 === 0) await attach(thread, { removed: [file.id] });
    }
  };
  // Statements over files of all organizations, in both directions.
  const sweep = async (order: string): Promise<void> => {
    for (let i = 0; i < 20; i++) {
      await on.pool.query(
        `update files set size = size + 1 from (select id from files order by organization_id ${order} for update skip locked) f
         where files.id = f.id`,
      );
    }
  };
  await Promise.all([...threads.map(work), sweep('asc'), sweep('desc')]);
  for (const thread of threads) expect(await usage(thread)).toEqual(await recount(thread));
  await Promise.all(threads.map((thread) => on.store.deleteThread(thread.threadId)));
  for (const thread of threads) expect(await usage(thread)).toEqual([0, 0]);
});
