import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { verify } from '#projections';
import { BlobKeeper, FileStore, storeArtifact, type FileRow, type FolderChange } from '#files';
import { ApiUnderTest } from '../api-under-test.testing.ts';

// Real: HTTP, PostgreSQL, the disk. The test appends the events of a worker.

const MEBIBYTE = 1024 * 1024;

let api: ApiUnderTest;
let folder: string;
let files: FileStore;
let blobs: BlobKeeper;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spool-folder-files-'));
  api = await ApiUnderTest.start({ settings: { BLOB_URL: pathToFileURL(folder).href } });
  files = api.app.get(FileStore);
  blobs = api.app.get(BlobKeeper);
});

afterAll(async () => {
  await api.stop();
  await rm(folder, { recursive: true });
});

interface Working {
  threadId: string;
  runId: string;
}

async function runningThread(): Promise<Working> {
  const threadId = await api.newThread({ text: 'x' });
  const runId = (await api.get(`/threads/${threadId}`)).json.run.id;
  await api.startRun(threadId, runId);
  return { threadId, runId };
}

/** Writes `docs/a.txt` to the folder of the Thread as the Run: a new file, or a replacement of `old`. */
async function write({ threadId, runId }: Working, text: string, old?: FileRow): Promise<FileRow> {
  const file = await storeArtifact(blobs, runId, {
    name: 'docs/a.txt',
    bytes: Buffer.from(text),
    maxBytes: 64 * MEBIBYTE,
  });
  const path = 'docs/a.txt';
  const change: FolderChange = old
    ? { does: 'replace', path, basedOn: old.blob_key, file }
    : { does: 'add', path, basedOn: null, file };
  const fileId = old?.id ?? file.id;
  const fence = { runId, attempt: 1 };
  const outcome = await api.handler.handle({
    ...{ threadId, fence },
    commands: [{ type: 'record', ...fence, facts: [{ type: 'file.changed', data: { fileId } }] }],
    hook: () =>
      files.inAppend({ folder: { folderId: threadId, changes: [change], maxFiles: 10, maxBytes: 100 * MEBIBYTE } }),
  });
  expect(outcome).toMatchObject({ outcome: 'appended' });
  return (await files.find(fileId))!;
}

/** Does the work of the sweeper, without the delay. */
async function sweep(): Promise<void> {
  await api.pool.query('update unclaimed_blobs set due_at = now()');
  while (await blobs.sweep());
}

const content = (fileId: string, headers: Record<string, string> = {}) =>
  fetch(`${api.url}/files/${fileId}/content`, { headers: { authorization: `Bearer ${api.token}`, ...headers } });

/** Completes the Run of the Thread and starts another one. */
async function nextRun({ threadId, runId }: Working): Promise<Working> {
  const finalOutput = { text: 'done', warnings: [] };
  await api.happen(threadId, { type: 'complete_run', runId, attempt: 1, finalOutput });
  const events = [{ type: 'user_message', text: 'again' }];
  const { json } = await api.post(`/threads/${threadId}/events`, { body: { events } });
  const next = { threadId, runId: json.events[0]!.run.id };
  await api.startRun(threadId, next.runId);
  return next;
}

describe('an artifact that a second Run changes', () => {
  test('keeps its id, name, kind and createdAt, and has another ETag', async () => {
    const thread = await runningThread();
    const first = await write(thread, 'old bytes');
    const path = `/threads/${thread.threadId}/files`;
    const listed = async () => ((await api.get(path)).json as unknown as { files: object[] }).files;
    const [before] = await listed();
    const read = await content(first.id);
    const oldTag = read.headers.get('etag') ?? '';
    expect([oldTag, await read.text()]).toEqual([expect.stringMatching(/^"[^"]+"$/), 'old bytes']);

    const second = await nextRun(thread);
    const changed = await write(second, 'new', first);
    expect(await listed()).toEqual([{ ...before, size: 3 }]);
    const now = await content(first.id, { 'if-none-match': oldTag });
    const newTag = now.headers.get('etag') ?? '';
    expect([now.status, await now.text()]).toEqual([200, 'new']);
    expect(newTag).not.toBe(oldTag);
    expect((await content(first.id, { 'if-none-match': newTag })).status).toBe(304);

    // The earlier bytes keep their ETag.
    await write(await nextRun(second), 'old bytes', changed);
    expect((await content(first.id, { 'if-none-match': oldTag })).status).toBe(304);
    expect((await content(first.id, { 'if-none-match': newTag })).status).toBe(200);
  });
});

describe('a file that an agent replaces', () => {
  test('is sent as the new file if it changes after its look-up', async () => {
    const thread = await runningThread();
    const old = await write(thread, 'old bytes');
    const find = files.find.bind(files);
    const looking = jest.spyOn(files, 'find').mockImplementationOnce(async (fileId) => {
      const row = await find(fileId);
      await write(thread, 'new', old);
      await sweep();
      return row;
    });
    const read = await content(old.id);
    looking.mockRestore();
    expect([read.status, read.headers.get('content-length'), await read.text()]).toEqual([200, '3', 'new']);
    expect(read.headers.get('etag')).toBe(`"${(await files.find(old.id))?.sha256}"`);
  });

  test('is sent as the complete old file to a reader that has started', async () => {
    const thread = await runningThread();
    const bytes = 'x'.repeat(16 * MEBIBYTE);
    const old = await write(thread, bytes);
    const reading = await content(old.id);
    await write(thread, 'new', old);
    await sweep();
    expect((await reading.text()) === bytes).toBe(true);
  });
});

describe('If-Match', () => {
  const remove = (path: string, tag: string) => api.call('DELETE', path, { headers: { 'if-match': tag } });

  test.each([
    ['412 if the bytes change between the check and the deletion', (tag: string) => tag, 412],
    ['200 for *, also if the bytes change', () => '*', 200],
  ])('returns %s', async (_, tagFor, status) => {
    const thread = await runningThread();
    const old = await write(thread, 'old bytes');
    const find = files.find.bind(files);
    const looking = jest.spyOn(files, 'find').mockImplementationOnce(async (fileId) => {
      const row = await find(fileId);
      await write(thread, 'new', old);
      return row;
    });
    const answer = await remove(`/files/${old.id}`, tagFor(`"${old.sha256}"`));
    looking.mockRestore();
    expect(answer.status).toBe(status);
    expect((await files.find(old.id)) === null).toBe(status === 200);
  });

  test('applies to drafts too', async () => {
    const body = new FormData();
    body.append('file', new Blob(['draft']), 'a.txt');
    const { json } = await api.call('POST', `/agents/${api.agentId}/files`, { form: body });
    const { id } = (json as unknown as { file: { id: string } }).file;
    expect((await remove(`/files/${id}`, '"x"')).status).toBe(412);
    const { sha256 } = (await files.find(id))!;
    expect((await remove(`/files/${id}`, `"${sha256}"`)).status).toBe(200);
  });
});

describe('a file in a folder', () => {
  test('is listed, deleted and detached like any file of its Thread, and frees its path', async () => {
    const thread = await runningThread();
    const { threadId } = thread;
    const file = await write(thread, 'a');
    const { json } = await api.get(`/threads/${threadId}/files`);
    expect(json).toMatchObject({ files: [{ id: file.id, name: 'a.txt' }] });
    expect((await api.call('DELETE', `/files/${file.id}`)).status).toBe(200);
    expect(await files.listFolder(threadId, threadId)).toEqual([]);
    await expect(blobs.get(file.blob_key)).rejects.toThrow();
    const again = await write(thread, 'b');
    expect((await api.call('DELETE', `/threads/${threadId}/files/${again.id}`)).status).toBe(200);
    expect(await files.listFolder(threadId, threadId)).toEqual([]);
  });

  test('is deleted with its Thread, including all bytes', async () => {
    const thread = await runningThread();
    const old = await write(thread, 'old');
    const file = await write(thread, 'new', old);
    expect((await verify(api.pool)).findings).toEqual([]);
    expect((await api.call('DELETE', `/threads/${thread.threadId}`)).status).toBe(200);
    expect((await content(file.id)).status).toBe(404);
    await sweep();
    for (const { blob_key } of [old, file]) await expect(blobs.get(blob_key)).rejects.toThrow();
    expect((await verify(api.pool)).findings).toEqual([]);
  });
});
