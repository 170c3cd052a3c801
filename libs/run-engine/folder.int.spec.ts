import { rename, rm, writeFile } from 'node:fs/promises';
import { ulid } from 'ulid';
import { FileRefused, type FolderFile, type ToolContext } from '#agents';
import { FileStore, storeAttachment } from '#files';
import { makeWorld, type World } from './engine.testing.ts';
import {
  anotherRunThat,
  bytes,
  folderOf,
  remove,
  runThat,
  textOf,
  workerThat,
  write,
  type Act,
  type Said,
} from './folder.testing.ts';
import { gate, scripted } from './scripted-harness.testing.ts';

// Real: PostgreSQL, bytes on disk, and an engine for each Run.

const LIMITS = { maxFiles: 4, maxBytes: 1_000, maxFileBytes: 500 };

let world: World;
beforeAll(async () => {
  world = await makeWorld({ folderLimits: LIMITS });
});
afterAll(() => world.close());

const inRun = (said: Said, act: Act) => runThat(world, said, act);
const inNewThread = async (act: Act) => inRun(await world.say('x', scripted), act);
const again = (said: Said, act: Act) => anotherRunThat(world, said, act);
const seenIn = (said: Said) => folderOf(world, said);

const toldOf = async (threadId: string) =>
  (await world.log(threadId)).flatMap(({ type, content }) =>
    type === 'file.changed' || type === 'session_files.updated' ? [[type, content]] : [],
  );
const rowsOf = async (threadId: string) => new FileStore(world.pool).list(threadId);
const resultsOf = async (threadId: string) =>
  (await world.log(threadId)).flatMap(({ type, content, status }) =>
    type === 'tool.use.completed' ? [[status, content]] : [],
  );
const unclaimed = async () =>
  (await world.pool.query<{ key: string }>('select blob_key as key from unclaimed_blobs')).rows.map(({ key }) => key);

describe('a file that a tool writes', () => {
  it('is in the folder of its Thread with the tool’s result, and in the log', async () => {
    let fileId = '';
    const said = await inNewThread(async ({ files }) => {
      ({ fileId } = await files.write('./docs/plan.md', bytes('# Plan')));
      // Not earlier, because another Run must not see changes that may be dropped.
      expect(await files.list()).toEqual([]);
    });
    expect(await seenIn(said)).toEqual({ 'docs/plan.md': '# Plan' });
    expect(await toldOf(said.threadId)).toEqual([
      ['file.changed', fileId],
      ['session_files.updated', fileId],
    ]);
    const [row] = await rowsOf(said.threadId);
    expect(row).toMatchObject({ id: fileId, kind: 'artifact', name: 'plan.md', run_id: said.runId, size: 6 });
    expect(await seenIn(await inNewThread(async () => undefined))).toEqual({});
  });

  it('again keeps its id, has the new bytes, and leaves the old ones to the sweeper', async () => {
    const said = await inNewThread(write('a.txt', 'old'));
    const [old] = await rowsOf(said.threadId);
    await again(said, write('a.txt', 'new'));
    const [row] = await rowsOf(said.threadId);
    expect(row).toMatchObject({ id: old?.id, name: 'a.txt' });
    expect(row?.sha256).not.toBe(old?.sha256);
    expect(await unclaimed()).toContain(old?.blob_key);
    expect(await unclaimed()).not.toContain(row?.blob_key);
    expect(await toldOf(said.threadId)).toEqual([
      ['file.changed', old?.id],
      ['session_files.updated', old?.id],
      ['file.changed', old?.id],
    ]);
    expect(await seenIn(said)).toEqual({ 'a.txt': 'new' });
  });

  it('can be removed, also by the same call', async () => {
    const said = await inNewThread(async ({ files }) => {
      await files.write('a.txt', bytes('a'));
      await files.write('b.txt', bytes('b'));
      await files.write('b.txt', bytes('c'));
      await files.write('gone.txt', bytes('gone'));
      await files.remove('gone.txt');
    });
    const rows = await rowsOf(said.threadId);
    const removed = rows.find(({ name }) => name === 'a.txt')!;
    await again(said, remove('a.txt'));
    expect(await seenIn(said)).toEqual({ 'b.txt': 'c' });
    expect(await unclaimed()).toContain(removed.blob_key);
    expect((await world.stream(said.threadId)).findLast(({ type }) => type === 'files.updated')).toMatchObject({
      data: { fileId: removed.id, change: 'deleted' },
    });
  });

  it('is dropped if the tool fails afterwards in any way', async () => {
    const before = await unclaimed();
    const said = await inNewThread(async ({ files }) => {
      await files.write('a.txt', bytes('a'));
      throw new Error('broken');
    });
    await again(said, async ({ files }) => {
      await files.write('a.txt', bytes('a'));
      return { text: 'no', isError: true };
    });
    expect(await rowsOf(said.threadId)).toEqual([]);
    expect(await toldOf(said.threadId)).toEqual([]);
    expect(await unclaimed()).toEqual(before);
  });

  it.each([
    ['../secret', 'The path has a “.” or “..” part.'],
    ['attachments/a.txt', 'attachments/ and artifacts/ are read-only.'],
    ['artifacts/a.txt', 'attachments/ and artifacts/ are read-only.'],
    ['a.txt/b', 'a.txt is a file, not a folder.'],
    ['docs', 'docs is a folder.'],
  ])('cannot be %s', async (path, why) => {
    const refusals: unknown[] = [];
    await inNewThread(async ({ files }) => {
      await files.write('a.txt', bytes('a'));
      await files.write('docs/a.txt', bytes('a'));
      await files.write(path, bytes('a')).catch((error: unknown) => refusals.push(error));
    });
    expect(refusals).toEqual([new FileRefused(why)]);
  });
});

describe('the files that an agent sees', () => {
  it('include attachments and artifacts as read-only files', async () => {
    const said = await world.say('x', scripted);
    const attach = async (text: string): Promise<void> => {
      const file = await storeAttachment(world.blobs, { name: 'a.txt', bytes: bytes(text), maxBytes: 100 });
      await world.attach(said.threadId, file);
    };
    await attach('first');
    await inRun(said, async ({ files, saveArtifact }) => {
      await saveArtifact({ name: 'left.txt', mimeType: null, bytes: bytes('left') });
      await files.write('own.txt', bytes('own'));
    });
    await attach('second');
    expect(await seenIn(said)).toEqual({
      'attachments/a.txt': 'first',
      'attachments/a (2).txt': 'second',
      'artifacts/left.txt': 'left',
      'own.txt': 'own',
    });
    let listed: readonly FolderFile[] = [];
    await again(said, async ({ files }) => void (listed = await files.list()));
    expect(listed.map(({ path, readOnly, size }) => [path, readOnly, size])).toEqual([
      ['artifacts/left.txt', true, 4],
      ['attachments/a (2).txt', true, 6],
      ['attachments/a.txt', true, 5],
      ['own.txt', false, 3],
    ]);
  });

  it('include the files of the message, also in a Run that resumes another', async () => {
    const said = await world.say('x', scripted);
    const file = await storeAttachment(world.blobs, { name: 'a.txt', bytes: bytes('a'), maxBytes: 100 });
    await world.attach(said.threadId, file);
    await world.handle(said.threadId, { type: 'interrupt', runId: null, by: null });
    const { agentVersion, limits } = said;
    const run = { runId: ulid(), agentVersion, limits };
    await world.handle(said.threadId, { type: 'retry_run', runId: said.runId, run });
    let paths: string[] = [];
    const worker = await workerThat(world, async ({ files }) => {
      paths = (await files.list()).map(({ path }) => path);
    });
    await worker.executeJob({ threadId: said.threadId, runId: run.runId, dispatch: 1 });
    expect(paths).toEqual(['attachments/a.txt']);
  });

  it('can be read in part, also past the end', async () => {
    const said = await inNewThread(write('a.txt', '0123456789'));
    const parts: string[] = [];
    await again(said, async ({ files }) => {
      const [file] = await files.list();
      for (const range of [
        { start: 2, end: 4 },
        { start: 8, end: 99 },
        { start: 10, end: 20 },
      ]) {
        let text = '';
        for await (const chunk of await files.read(file!, range)) text += Buffer.from(chunk).toString();
        parts.push(text);
      }
    });
    expect(parts).toEqual(['234', '89', '']);
  });

  it('are only those of the Thread and its folder', async () => {
    const other = await inNewThread(write('a.txt', 'secret'));
    const [row] = await rowsOf(other.threadId);
    const file = { fileId: row!.id, path: 'a.txt', mimeType: null, size: 6, readOnly: false };
    let refusal: unknown;
    await inNewThread(async ({ files }) => void (await files.read(file).catch((error: unknown) => (refusal = error))));
    expect(refusal).toEqual(new FileRefused('The file a.txt no longer exists.'));
  });

  it('have the newest bytes, even if the old ones were swept after the look-up', async () => {
    const said = await inNewThread(write('a.txt', 'old'));
    const files = new FileStore(world.pool);
    const [old] = await rowsOf(said.threadId);
    let text = '';
    await again(said, async (context) => {
      const [file] = await context.files.list();
      const reading = await context.files.read(file!);
      const kept = await world.blobs.put(bytes('new'), { maxBytes: 10, claimWithinMs: 60_000 });
      await world.pool.query('update files set blob_key = $1 where id = $2', [kept.key, file!.fileId]);
      await world.blobs.discard([old!.blob_key]);
      for await (const chunk of reading) text += Buffer.from(chunk).toString();
    });
    expect(text).toBe('new');
    expect((await files.find(old!.id))?.blob_key).not.toBe(old?.blob_key);
  });
});

describe('a folder’s limits', () => {
  const refusalsOf = async (...files: [string, number][]) => {
    const refusals: string[] = [];
    const said = await inNewThread(async (context) => {
      for (const [path, size] of files)
        await context.files.write(path, bytes('x'.repeat(size))).catch((error: Error) => refusals.push(error.message));
    });
    return { refusals, paths: Object.keys(await seenIn(said)) };
  };
  const FULL = 'The folder can have at most 4 files and 1000 bytes in all. Delete some first.';

  it('hold for all bytes, and for one file', async () => {
    const { refusals, paths } = await refusalsOf(
      ['a', 501],
      ['a', 500],
      ['b', 400],
      ['c', 101],
      ['b', 100],
      ['c', 101],
    );
    expect(refusals).toEqual(['A file can have at most 500 bytes.', FULL]);
    expect(paths).toEqual(['a', 'b', 'c']);
  });

  it('hold for two Runs that fill the folder at the same time: one gets an error', async () => {
    const agent = await world.makeAgent(scripted);
    const gates = [gate(), gate()];
    const fill = async (name: string, filled: ReturnType<typeof gate>): Promise<Said> => {
      const said = await world.sayTo(agent, 'x', 'pet');
      return inRun(said, async ({ files }) => {
        for (const number of [1, 2, 3]) await files.write(`${name}${number}`, bytes('x'));
        await filled.pass();
      });
    };
    const both = Promise.all(gates.map((filled, i) => fill(`${i}`, filled)));
    await Promise.all(gates.map(({ reached }) => reached));
    gates.forEach(({ open }) => open());
    const results = await Promise.all((await both).map(({ threadId }) => resultsOf(threadId)));
    expect(results.flat().sort()).toEqual(
      [
        ['available', 'done'],
        ['error', FULL],
      ].sort(),
    );
  });
});

describe('the folder of a pet', () => {
  const twoThreads = async () => {
    const agent = await world.makeAgent(scripted);
    return [await world.sayTo(agent, 'x', 'pet'), await world.sayTo(agent, 'y', 'pet')] as const;
  };

  it('is shared by all its Threads: another Thread takes over a path, and the first keeps its file', async () => {
    const [first, second] = await twoThreads();
    await inRun(first, write('a.txt', 'of the first'));
    await inRun(second, write('a.txt', 'of the second'));
    expect(await seenIn(first)).toEqual({ 'a.txt': 'of the second', 'artifacts/a.txt': 'of the first' });
    expect(await seenIn(second)).toEqual({ 'a.txt': 'of the second' });
    const [[mine], [its]] = [await rowsOf(first.threadId), await rowsOf(second.threadId)];
    expect(await toldOf(first.threadId)).toEqual([
      ['file.changed', mine?.id],
      ['session_files.updated', mine?.id],
    ]);
    expect(await toldOf(second.threadId)).toEqual([
      ['file.changed', its?.id],
      ['session_files.updated', its?.id],
    ]);
  });

  it('loses a path that another Thread removes, and the first Thread keeps its file', async () => {
    const [first, second] = await twoThreads();
    await inRun(first, write('a.txt', 'a'));
    await inRun(second, remove('a.txt'));
    expect(await seenIn(second)).toEqual({});
    expect(await seenIn(first)).toEqual({ 'artifacts/a.txt': 'a' });
    expect(await toldOf(second.threadId)).toEqual([]);
  });

  it('loses the files of a Thread that is deleted', async () => {
    const [first, second] = await twoThreads();
    await inRun(first, write('a.txt', 'a'));
    await inRun(second, write('b.txt', 'b'));
    await world.store.deleteThread(first.threadId);
    expect(await seenIn(second)).toEqual({ 'b.txt': 'b' });
    await again(second, write('a.txt', 'again'));
    expect(await seenIn(second)).toEqual({ 'a.txt': 'again', 'b.txt': 'b' });
  });

  it.each<[string, Act | null, Act, string | undefined]>([
    ['writes the file that both had seen', write('a.txt', 'before'), write('a.txt', '2'), '2'],
    ['removes the file', write('a.txt', 'before'), remove('a.txt'), undefined],
    ['creates the same file', null, write('a.txt', '2'), '2'],
  ])('refuses the changes of the first call when another call meanwhile %s', async (_, before, other, left) => {
    const [first, second] = await twoThreads();
    await inRun(second, before ?? (async () => undefined));
    const looked = gate();
    const slow = inRun(first, async ({ files, saveArtifact }) => {
      await files.list();
      await looked.pass();
      await files.write('a.txt', bytes('1'));
      await saveArtifact({ name: 'log.txt', mimeType: null, bytes: bytes('log') });
    });
    await looked.reached;
    await again(second, other);
    looked.open();
    await slow;
    const why = 'Nothing was changed: another call changed a.txt meanwhile. Read again.';
    expect(await resultsOf(first.threadId)).toEqual([['error', why]]);
    expect((await world.summary(first.runId)).status).toBe('completed');
    // Artifacts are stored in spite of the refusal.
    expect(await seenIn(first)).toEqual({
      'artifacts/log.txt': 'log',
      ...(left === undefined ? {} : { 'a.txt': left }),
    });
    expect(await toldOf(first.threadId)).toHaveLength(2);
    expect(await textsLeft()).not.toContain('1');
  });
});

/** Returns the stored bytes that belong to no file. */
async function textsLeft(): Promise<(string | null)[]> {
  return Promise.all(
    (await unclaimed()).map(async (key) => {
      const blob = await world.blobs.get(key).catch(() => null);
      return blob && Buffer.concat((await blob.toArray()) as Uint8Array[]).toString();
    }),
  );
}

describe('a worker that has lost its claim', () => {
  it('stores no file, and the next worker stores it once', async () => {
    const said = await world.say('x', scripted);
    const written = gate();
    const stale = inRun(said, async ({ files }) => {
      await files.write('a.txt', bytes('stale'));
      await written.pass();
    });
    await written.reached;
    await world.endLease(said.runId);
    await world.makeReaper().reap(new AbortController().signal);
    const job = { ...said.job, dispatch: 2 };
    await (await workerThat(world, write('a.txt', 'fresh'))).executeJob(job);
    written.open();
    await stale;
    expect(await seenIn(said)).toEqual({ 'a.txt': 'fresh' });
    expect(await toldOf(said.threadId)).toHaveLength(2);
    // The bytes of the lost worker are left to the sweeper.
    expect(await textsLeft()).toContain('stale');
  });
});

describe('an unavailable file storage', () => {
  it.each([
    ['reads', async ({ files }: ToolContext) => void (await textOf(files, (await files.list())[0]!))],
    ['writes', async ({ files }: ToolContext) => void (await files.write('b.txt', bytes('b')))],
  ])('makes the Run retry a tool that %s, until it is available', async (_, act) => {
    const said = await inNewThread(write('a.txt', 'a'));
    await rename(world.folder, `${world.folder}.moved`);
    await writeFile(world.folder, '');
    await again(said, act);
    const state = (await world.store.load(said.threadId))!.state;
    expect(state).toMatchObject({ runs: [{ status: 'queued', losses: 0, streak: { of: 'other', failures: 1 } }] });
    await rm(world.folder);
    await rename(`${world.folder}.moved`, world.folder);
    const job = world.jobs.findLast(({ threadId }) => threadId === said.threadId)!;
    await (await workerThat(world, act)).executeJob({ ...job, dispatch: 2 });
    expect((await world.summary(job.runId)).status).toBe('completed');
  });
});
