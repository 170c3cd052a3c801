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
/** When the transactions of the processes under test that wait for somebody's lock began. */
async function begunByWaiting(): Promise<string[]> {
  const pids = await blockedBackends(on.admin, 1);
  const query = 'select xact_start::text as begun from pg_stat_activity where pid = any ($1)';
  return (await on.admin.query<{ begun: string }>(query, [pids])).rows.map(({ begun }) => begun);
}
const unclaimed = async () =>
  (await on.admin.query<{ blob_key: string }>('select blob_key from unclaimed_blobs')).rows.map((row) => row.blob_key);
const versionOf = async ({ threadId }: LoadedThread) => (await on.store.load(threadId))?.version;

describe('a change of a folder', () => {
  test('is refused with everything else of its append where the path is not as it was', async () => {
    const running = await runningThread(on);
    const first = await add('a.txt');
    expect(await change(running, [first])).toBe('appended');
    const before = [await rows(), await versionOf(running.thread)];
    const stale = { path: 'a.txt', basedOn: 'another blob' } as const;
    for (const wrong of [
      await add('a.txt'),
      { does: 'replace' as const, ...stale, file: await newFile() },
      // Somebody else's by what the change says, and this Thread's.
      { does: 'take_over' as const, ...stale, basedOn: first.file.blob_key, file: await newFile() },
      { does: 'remove' as const, ...stale, file: null },
      { does: 'give_up' as const, ...stale, basedOn: first.file.blob_key, file: null },
      { does: 'remove' as const, path: 'nowhere', basedOn: first.file.blob_key, file: null },
    ]) {
      expect([wrong.does, await change(running, [await add('b.txt'), wrong])]).toEqual([wrong.does, 'folder_moved']);
      expect([await rows(), await versionOf(running.thread)]).toEqual(before);
    }
  });

  test('is refused where a path would be a file and a folder, unless it makes room for itself', async () => {
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

  test('is refused where the sweeper has its bytes', async () => {
    const running = await runningThread(on);
    const first = await add('a.txt');
    await change(running, [first]);
    const file = await newFile();
    await on.admin.query('delete from unclaimed_blobs');
    const anew = { does: 'replace' as const, path: 'a.txt', basedOn: first.file.blob_key, file };
    expect(await change(running, [anew])).toBe('folder_moved');
    expect(await rows()).toMatchObject([{ blob_key: first.file.blob_key }]);
  });

  test('is of one Thread at a time: the later one sees what the earlier has done', async () => {
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

  test('waits on one connection of its process, however many there are, and lets go again and again', async () => {
    const other = await openProcess(on.url);
    const running = [await runningThread(on), await runningThread(on)];
    const added = [await add('a'), await add('b')];
    await on.admin.query(`begin; select pg_advisory_xact_lock(hashtextextended('folder FOLDER', 0))`);
    const all = running.map((each, i) => change(each, [added[i]!], {}, other));
    const [first] = await begunByWaiting();
    // Its Thread is let go meanwhile, and what it holds on the server.
    const counts = new Set<number>();
    const isNew = async (): Promise<boolean> => {
      const waiting = await begunByWaiting();
      counts.add(waiting.length);
      return !waiting.includes(first!);
    };
    await eventually(isNew, { what: 'it tries anew' });
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

  test('is held to the limits as the folder is then, and not where it only removes', async () => {
    const running = await runningThread(on);
    const all = [await add('a', 40), await add('b', 40), await add('c', 20)];
    expect(await change(running, all)).toBe('appended');
    const anew = async (size: number) =>
      ({ does: 'replace', path: 'c', basedOn: all[2]!.file.blob_key, file: await newFile(size) }) as const;
    expect(await change(running, [await add('d', 0)])).toBe('folder_full');
    expect(await change(running, [await anew(21)])).toBe('folder_full');
    const remove = { does: 'remove', path: 'a', basedOn: all[0]!.file.blob_key, file: null } as const;
    expect(await change(running, [remove], { maxFiles: 1, maxBytes: 1 })).toBe('appended');
    expect(await unclaimed()).toContain(all[0]!.file.blob_key);
    expect(await change(running, [await anew(60)])).toBe('appended');
    expect((await rows()).map(({ path }) => path)).toEqual(['b', 'c']);
  });
});

test('a deletion that crosses with who takes its files over, in another order, is done again', async () => {
  const running = await runningThread(on);
  const { threadId } = running.thread;
  expect(await change(running, [await add('a.txt'), await add('b.txt')])).toBe('appended');
  const give = (path: string) =>
    on.admin.query('update files set folder_id = null, path = null where path = $1', [path]);
  // The other's statement waits for the longer, so that the deletion is the one that is undone.
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
