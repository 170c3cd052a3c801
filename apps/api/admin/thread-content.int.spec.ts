import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { loseBlobs } from '#testing';
import { AdminUnderTest, type Given } from './admin-under-test.testing.ts';

let admin: AdminUnderTest;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spool-admin-'));
  admin = await AdminUnderTest.start({ BLOB_URL: pathToFileURL(folder).href });
});
afterAll(async () => {
  await admin.stop();
  await rm(folder, { recursive: true });
});

test('archives and unarchives an idle Thread, and refuses a busy or terminated one', async () => {
  const params = { threadId: await admin.api.newThread() };
  const message = { events: [{ type: 'user_message', text: 'hi' }] };
  const said = async () => (await admin.api.post(`/threads/${params.threadId}/events`, { body: message })).status;
  expect((await admin.do('archiveThread', { params })).thread.archived).toBe(true);
  expect(await said()).toBe(409);
  expect((await admin.do('archiveThread', { params })).thread.archived).toBe(true);
  expect((await admin.do('unarchiveThread', { params })).thread.archived).toBe(false);
  expect(await said()).toBe(200);
  const busy = { threadId: await admin.api.newThread({ text: 'hi' }) };
  expect((await admin.refused('archiveThread', { params: busy }))[0]).toBe('conflict');
  await admin.do('terminateThread', { params: busy });
  for (const name of ['archiveThread', 'unarchiveThread'] as const) {
    expect([name, (await admin.refused(name, { params: busy }))[0]]).toEqual([name, 'conflict']);
  }
});

describe('the stored events of a Thread', () => {
  async function withDeltas(texts: string[]): Promise<string> {
    const threadId = await admin.api.newThread({ text: 'hi' });
    const runId = (await admin.do('getThread', { params: { threadId } })).runs[0]!.id;
    await admin.api.startRun(threadId, runId);
    const facts = texts.map((text) => ({ type: 'assistant.text_added', data: { text } }) as const);
    await admin.api.happen(threadId, { type: 'record', runId, attempt: 1, facts });
    return threadId;
  }

  const pagesOf = async (threadId: string, query: Given<'listThreadEvents'>['query'] = {}) => {
    const pages = [];
    for (let before: number | null | undefined; before !== null;) {
      const page = await admin.do('listThreadEvents', {
        params: { threadId },
        query: { ...query, ...(before === undefined ? {} : { before: String(before) }) },
      });
      pages.push(page.events);
      before = page.nextBefore;
    }
    return pages;
  };

  test('are listed unchanged, newest first, in pages', async () => {
    const threadId = await withDeltas(['a', 'b', 'c']);
    const all = (await admin.lines('exportThread', { params: { threadId } })).toReversed();
    const pages = await pagesOf(threadId, { limit: '3' });
    expect(pages.flat()).toEqual(all);
    expect(pages.slice(0, -1).map(({ length }) => length)).toEqual(pages.slice(1).map(() => 3));
    expect(await pagesOf(threadId)).toEqual([all]);
  });

  test('are listed in shorter pages if they are large', async () => {
    const threadId = await withDeltas(Array.from({ length: 10 }, (_, i) => `${i}`.repeat(500_000)));
    const pages = await pagesOf(threadId);
    expect(pages.map(({ length }) => length).slice(0, 2)).toEqual([5, 5]);
    const { events } = await admin.do('getThread', { params: { threadId } });
    expect(pages.flat().map(({ version }) => version)).toEqual(Array.from({ length: events }, (_, i) => events - i));
  });
});

describe('the admin API for files', () => {
  async function attach(threadId: string, name: string, content: string): Promise<string> {
    const contentBase64 = Buffer.from(content).toString('base64');
    const body = { name, contentType: 'text/plain', contentBase64 };
    const { json } = await admin.api.post(`/threads/${threadId}/files`, { body });
    return (json as unknown as { file: { id: string } }).file.id;
  }

  const content = (fileId: string, headers: Record<string, string> = {}) => {
    const [url, init] = admin.request('downloadFile', { params: { fileId } });
    return fetch(url, { ...init, headers: { ...(init.headers as Record<string, string>), ...headers } });
  };

  test('lists the files of a Thread newest first, in pages', async () => {
    const threadId = await admin.api.newThread();
    const ids = [];
    for (const name of ['a.txt', 'b.txt', 'c.txt']) ids.unshift(await attach(threadId, name, name));
    const { files, nextCursor } = await admin.do('listThreadFiles', { params: { threadId }, query: { limit: '2' } });
    expect(files.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect(files[0]).toEqual({
      ...{ id: ids[0], kind: 'attachment', name: 'c.txt', path: null, mimeType: 'text/plain', size: 5, runId: null },
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
    });
    const query = { limit: '2', cursor: nextCursor! };
    const rest = await admin.do('listThreadFiles', { params: { threadId }, query });
    expect([rest.files.map(({ id }) => id), rest.nextCursor]).toEqual([[ids[2]], null]);
  });

  test('sends a file unchanged as an attachment, with ranges and ETags', async () => {
    const fileId = await attach(await admin.api.newThread(), 'Bericht „ü“.html', '<script>1</script>');
    const whole = await content(fileId);
    expect([whole.status, await whole.text()]).toEqual([200, '<script>1</script>']);
    expect(Object.fromEntries(whole.headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': '18',
      'x-content-type-options': 'nosniff',
      'content-disposition': expect.stringMatching(/^attachment; filename=.*filename\*=UTF-8''Bericht/) as string,
      'cache-control': 'private, no-cache',
    });
    const range = await content(fileId, { range: 'bytes=1-6' });
    expect([range.status, range.headers.get('content-range'), await range.text()]).toEqual([
      206,
      'bytes 1-6/18',
      'script',
    ]);
    const etag = whole.headers.get('etag')!;
    expect((await content(fileId, { 'if-none-match': etag })).status).toBe(304);
    const beyond = await content(fileId, { range: 'bytes=99-' });
    expect([beyond.status, await beyond.json()]).toEqual([
      416,
      { error: { code: 'invalid_request', message: 'Range: is outside the file' } },
    ]);
  });

  test('returns not_found for draft files and files of a deleted Thread', async () => {
    const { api } = admin;
    const form = new FormData();
    form.append('file', new Blob(['draft']), 'draft.txt');
    const draft = (await api.post(`/agents/${api.agentId}/files`, { form })).json as unknown as {
      file: { id: string };
    };
    const threadId = await api.newThread();
    const fileId = await attach(threadId, 'a.txt', 'a');
    await admin.do('deleteThread', { params: { threadId } });
    for (const id of [draft.file.id, fileId]) {
      expect(await admin.refused('downloadFile', { params: { fileId: id } })).toEqual([
        'not_found',
        `There is no file ${id}.`,
      ]);
    }
  });

  test('returns 410 not_found for a file with lost bytes', async () => {
    const fileId = await attach(await admin.api.newThread(), 'a.txt', 'lost');
    await loseBlobs(folder);
    const { status, json } = await admin.send('downloadFile', { params: { fileId } });
    expect([status, json]).toMatchObject([410, { error: { code: 'not_found' } }]);
  });
});
