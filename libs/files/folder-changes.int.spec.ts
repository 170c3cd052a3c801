import { ulid } from 'ulid';
import { eventually } from '#testing';
import { nameOf, type LoadedThread } from '#event-store';
import type { FolderChange, FolderChanges } from './file-changes.ts';
import { FileStore } from './file-store.ts';
import type { PreparedFile } from './store-file.ts';
import {
  apply,
  blockedBackends,
  makeAppend,
  openFixture,
  openProcess,
  record,
  runningThread,
  type Fixture,
} from '../event-store/store.testing.ts';

// Real: PostgreSQL.

let on: Fixture;
let files: FileStore;
beforeEach(async () => {
  on = await openFixture();
  files = new FileStore(on.pool);
});
afterEach(() => on.close());

async function newFile(size = 5): Promise<PreparedFile> {
  const blob_key = `blob ${ulid()}`;
  await on.admin.query(`insert into unclaimed_blobs values ($1, now() + interval '1 hour')`, [blob_key]);
  const about = { name: 'a.txt', mime_type: 'text/plain', size, sha256: '00' };
  return { id: ulid(), run_id: ulid(), kind: 'artifact', blob_key, ...about };
}

type Running = Awaited<ReturnType<typeof runningThread>>;

const add = async (path: string, size?: number): Promise<FolderChange & { file: PreparedFile }> => {
  const file = await newFile(size);
  return { does: 'add', path, basedOn: null, file };
};

async function change(
  { thread, fence }: Running,
  changes: FolderChange[],
  more: Partial<FolderChanges> = {},
  { handler }: Pick<Fixture, 'handler'> = on,
): Promise<string> {
  const folder = { folderId: 'FOLDER', changes, maxFiles: 3, maxBytes: 100, ...more };
  const { threadId } = thread;
  const result = await handler.handle({
    threadId,
    commands: [record(fence)],
    fence,
    hook: () => files.inAppend({ folder }),
  });
  return nameOf(result);
}

const rows = async () =>
  (
    await on.admin.query<{ id: string; path: string; blob_key: string }>(
      'select id, path, blob_key from files where path is not null order by path',
    )
  ).rows;
/** Returns the start times of the transactions under test that wait for a lock. */
async function begunByWaiting(): Promise<string[]> {
  const pids = await blockedBackends(on.admin, 1);
  const query = 'select xact_start::text as begun from pg_stat_activity where pid = any ($1)';
  return (await on.admin.query<{ begun: string }>(query, [pids])).rows.map(({ begun }) => begun);
}
const unclaimed = async () =>
  (await on.admin.query<{ blob_key: string }>('select blob_key from unclaimed_blobs')).rows.map((row) => row.blob_key);
const versionOf = async ({ threadId }: LoadedThread) => (await on.store.load(threadId))?.version;

describe('a change of a folder', () => {
  test('is refused with its whole append if the path has changed', async () => {
    const running = await runningThread(on);
    const first = await add('a.txt');
    expect(await change(running, [first])).toBe('appended');
    const before = [await rows(), await versionOf(running.thread)];
    const stale = { path: 'a.txt', basedOn: 'another blob' } as const;
    for (const wrong of [
      await add('a.txt'),
      { does: 'replace' as const, ...stale, file: await newFile() },
      // The change says that another Thread has the file, but this Thread has it.
      { does: 'take_over' as const, ...stale, basedOn: first.file.blob_key, file: await newFile() },
      { does: 'remove' as const, ...stale, file: null },
      { does: 'give_up' as const, ...stale, basedOn: first.file.blob_key, file: null },
      { does: 'remove' as const, path: 'nowhere', basedOn: first.file.blob_key, file: null },
    ]) {
      expect([wrong.does, await change(running, [await add('b.txt'), wrong])]).toEqual([wrong.does, 'folder_moved']);
      expect([await rows(), await versionOf(running.thread)]).toEqual(before);
    }
  });

  test('is refused if a path would be a file and a folder, unless it makes room itself', async () => {
    const running = await runningThread(on);
    const first = await add('a/b');
    expect(await change(running, [first])).toBe('appended');
    for (const crossing of ['a', 'a/b/c', 'a/b/c/d'])
      expect([crossing, await change(running, [await add(crossing)])]).toEqual([crossing, 'folder_moved']);
    expect(await change(running, [await add('a/bc')])).toBe('appended');
    const room = { does: 'remove', path: 'a/b', basedOn: first.file.blob_key, file: null } as const;
    expect(await change(running, [room, await add('a/b/c')])).toBe('appended');
    expect((await rows()).map(({ path }) => path)).toEqual(['a/b/c', 'a/bc']);
  });

  test('is refused if the sweeper has its bytes', async () => {
    const running = await runningThread(on);
    const first = await add('a.txt');
    await change(running, [first]);
    const file = await newFile();
    await on.admin.query('delete from unclaimed_blobs');
    const replace = { does: 'replace' as const, path: 'a.txt', basedOn: first.file.blob_key, file };
    expect(await change(running, [replace])).toBe('folder_moved');
    expect(await rows()).toMatchObject([{ blob_key: first.file.blob_key }]);
  });

  test('is made by one Thread at a time, and the later one sees the earlier change', async () => {
    const [first, second] = [await runningThread(on), await runningThread(on)];
    const [a, b] = [await add('a.txt'), await add('a.txt')];
    await on.admin.query(`begin; select pg_advisory_xact_lock(hashtextextended('folder FOLDER', 0))`);
    const other = await openProcess(on.url);
    const both = [change(first, [a]), change(second, [b], {}, other)];
    await blockedBackends(on.admin, 2);
    await on.admin.query('commit');
    expect((await Promise.all(both)).sort()).toEqual(['appended', 'folder_moved']);
    expect(await rows()).toHaveLength(1);
    await other.close();
  });

  test('waits on one connection of its process for any number of Threads, and releases its locks regularly', async () => {
    const other = await openProcess(on.url);
    const running = [await runningThread(on), await runningThread(on)];
    const added = [await add('a'), await add('b')];
    await on.admin.query(`begin; select pg_advisory_xact_lock(hashtextextended('folder FOLDER', 0))`);
    const all = running.map((each, i) => change(each, [added[i]!], {}, other));
    const [first] = await begunByWaiting();
    // Each wait is limited: the append then releases its locks and tries again.
    const counts = new Set<number>();
    const isNew = async (): Promise<boolean> => {
      const waiting = await begunByWaiting();
      counts.add(waiting.length);
      return !waiting.includes(first!);
    };
    await eventually(isNew, { what: 'it tries again' });
    expect([...counts]).toEqual([1]);
    await on.admin.query('commit');
    expect(await Promise.all(all)).toEqual(['appended', 'appended']);
    await other.close();
  });

  test('of an old attempt is not made', async () => {
    const { thread, fence } = await runningThread(on);
    const stale = await makeAppend({ threadId: thread.threadId, from: thread, fence, commands: [record(fence)] });
    await apply(on.handler, { threadId: thread.threadId, commands: [{ type: 'hand_over_run', ...fence }] });
    const folder = { folderId: 'FOLDER', changes: [await add('a.txt')], maxFiles: 3, maxBytes: 100 };
    expect(await on.store.append({ ...stale, hook: files.inAppend({ folder }) })).toEqual({ outcome: 'conflict' });
    expect(await rows()).toEqual([]);
  });

  test('is checked against the limits after the change, unless it only removes', async () => {
    const running = await runningThread(on);
    const all = [await add('a', 40), await add('b', 40), await add('c', 20)];
    expect(await change(running, all)).toBe('appended');
    const replace = async (size: number) =>
      ({ does: 'replace', path: 'c', basedOn: all[2]!.file.blob_key, file: await newFile(size) }) as const;
    expect(await change(running, [await add('d', 0)])).toBe('folder_full');
    expect(await change(running, [await replace(21)])).toBe('folder_full');
    const remove = { does: 'remove', path: 'a', basedOn: all[0]!.file.blob_key, file: null } as const;
    expect(await change(running, [remove], { maxFiles: 1, maxBytes: 1 })).toBe('appended');
    expect(await unclaimed()).toContain(all[0]!.file.blob_key);
    expect(await change(running, [await replace(60)])).toBe('appended');
    expect((await rows()).map(({ path }) => path)).toEqual(['b', 'c']);
  });
});

test('a deletion that deadlocks with a takeover of its files is retried', async () => {
  const running = await runningThread(on);
  const { threadId } = running.thread;
  expect(await change(running, [await add('a.txt'), await add('b.txt')])).toBe('appended');
  const give = (path: string) =>
    on.admin.query('update files set folder_id = null, path = null where path = $1', [path]);
  // The takeover waits longer for a deadlock, so PostgreSQL aborts the deletion.
  await on.admin.query(`begin; set local deadlock_timeout = '1min'`);
  const [first, second] = (await on.admin.query<{ path: string }>('select path from files')).rows.map(
    ({ path }) => path,
  );
  await give(second!);
  const deleted = on.store.deleteThread(threadId);
  await blockedBackends(on.admin, 1);
  await give(first!);
  await on.admin.query('commit');
  expect((await deleted)?.blobKeys).toHaveLength(2);
  expect(await rows()).toEqual([]);
});
