import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import type { PublicFile, ThreadFile } from '#contract';
import { eventually } from '#testing';
import { ApiUnderTest, type Reply } from '../api-under-test.testing.ts';

// Real: HTTP, PostgreSQL, the disk.

let api: ApiUnderTest;
let folder: string;

const LIMITS = { FILE_LIMIT_BYTES: 1_000, INLINE_FILE_LIMIT_BYTES: 100, FILES_PER_THREAD: 3, DRAFTS_PER_TOKEN: 4 };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spool-files-'));
  api = await ApiUnderTest.start({ settings: { BLOB_URL: pathToFileURL(folder).href, ...LIMITS } });
});

afterAll(async () => {
  await api.stop();
  await rm(folder, { recursive: true });
});

type FileReply = Omit<Reply, 'json'> & { json: { file: PublicFile & ThreadFile; error: { message: string } } };

const filePart = (
  bytes: string | Uint8Array<ArrayBuffer>,
  name = 'note.txt',
  part = 'file',
): [string, Blob, string] => [part, new Blob([bytes]), name];

function upload(parts: [string, Blob, string][], { token = api.token, agentId = api.agentId, key = '' } = {}) {
  const body = new FormData();
  for (const part of parts) body.append(...part);
  const headers: Record<string, string> = key === '' ? {} : { 'idempotency-key': key };
  return api.call('POST', `/agents/${agentId}/files`, { token, form: body, headers }) as unknown as Promise<FileReply>;
}

async function newDraft(name = 'note.txt', token = api.token): Promise<PublicFile> {
  return (await upload([filePart(`draft ${name}`, name)], { token })).json.file;
}

const attach = (threadId: string, body: object, token = api.token) =>
  api.post(`/threads/${threadId}/files`, { body, token }) as unknown as Promise<FileReply>;

const inline = (bytes: string, name = 'a.txt') => ({
  name,
  contentType: 'text/plain',
  contentBase64: Buffer.from(bytes).toString('base64'),
});

/** Lists the files in the blob folder, complete or incomplete. */
async function storedBlobs(): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

const messageOf = ({ status, json }: Reply | FileReply) => [status, json.error.message];

describe('an upload', () => {
  test.each([
    ['one byte over the limit', 413, () => upload([filePart(randomBytes(1_001))])],
    ['many bytes over the limit', 413, () => upload([filePart(randomBytes(40_000))])],
    ['without a part', 400, () => upload([])],
    ['with two files', 400, () => upload([filePart('a'), filePart('b')])],
    ['with another field', 400, () => upload([filePart('a'), filePart('b', 'x', 'other')])],
    ['with another field name', 400, () => upload([filePart('a', 'x', 'upload')])],
    [
      'that is cut off',
      400,
      () => {
        const headers = { 'content-type': 'multipart/form-data; boundary=x' };
        const body = '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhalf';
        return api.post(`/agents/${api.agentId}/files`, { headers, body });
      },
    ],
  ])('%s is refused, and its bytes are deleted immediately', async (_, expected, send) => {
    expect((await send()).status).toBe(expected);
    expect(await storedBlobs()).toEqual([]);
  });

  test.each([
    ['no name', 'name="file"', 'application/octet-stream', 'file'],
    ['no name, but a type', 'name="file"', 'image/png', 'file'],
    ['no name, and a text type that is not a field', 'name=file', 'application/json; charset=utf-8', 'file'],
    ['an empty name', 'name="file"; filename=""', 'application/octet-stream', 'file'],
    ['an empty name of text', 'name="file"; filename=""', 'text/plain', 'file'],
    ['only an extended name', `name="file"; filename*=UTF-8''na%C3%AFve.txt`, 'text/plain', 'naïve.txt'],
  ])('of a part with %s is accepted', async (_, disposition, type, name) => {
    const headers = { 'content-type': 'multipart/form-data; boundary=x' };
    const body = `--x\r\nContent-Disposition: form-data; ${disposition}\r\nContent-Type: ${type}\r\n\r\nhi\r\n--x--\r\n`;
    const sent = await api.post(`/agents/${api.agentId}/files`, { headers, body });
    const { status, json } = sent as unknown as FileReply;
    expect([status, json.file.name]).toEqual([201, name]);
    expect((await api.call('DELETE', `/files/${json.file.id}`)).status).toBe(200);
  });

  test('that is refused in the middle of its body leaves the connection usable', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const before = (await storedBlobs()).length;
    const send = (method: string, path: string, headers: Record<string, string>, body?: Readable) =>
      new Promise<number>((resolve, reject) => {
        const options = { agent, method, headers: { authorization: `Bearer ${api.token}`, ...headers } };
        const sent = request(`${api.url}${path}`, options, (response) => {
          response.resume();
          response.once('end', () => resolve(response.statusCode ?? 0));
        });
        sent.once('error', reject);
        if (body) body.pipe(sent);
        else sent.end();
      });
    const part = (name: string) => `--x\r\nContent-Disposition: form-data; name="${name}"; filename="a"\r\n\r\n`;
    const chunk = 'x'.repeat(64 * 1024);
    try {
      for (const name of ['file', 'wrong']) {
        const body = Readable.from([part(name), ...Array.from({ length: 160 }, () => chunk), '\r\n--x--\r\n']);
        const headers = { 'content-type': 'multipart/form-data; boundary=x' };
        const status = await send('POST', `/agents/${api.agentId}/files`, headers, body);
        expect([name, status]).toEqual([name, name === 'file' ? 413 : 400]);
        expect(await send('GET', `/agents/${api.agentId}`, {})).toBe(200);
      }
    } finally {
      agent.destroy();
    }
    expect(await storedBlobs()).toHaveLength(before);
  });
});

describe('a file of a Thread', () => {
  test('is named by its log entries with extended=true, also after its deletion', async () => {
    const [first, second] = [await newDraft('a.txt'), await newDraft('b.txt')];
    const resources = [{ type: 'file', file_id: first.id }];
    const created = await api.post(`/agents/${api.agentId}/threads`, { body: { userId: 'u', resources } });
    const { id: threadId } = created.json.thread;
    await attach(threadId, { fileId: second.id });
    const posted = (await attach(threadId, inline('posted', 'c.txt'))).json.file.id;
    await api.call('DELETE', `/threads/${threadId}/files/${second.id}`);
    await api.call('DELETE', `/files/${posted}`);
    const { events } = (await api.get(`/threads/${threadId}/events?extended=true`)).json;
    type Extended = Record<'content' | 'name' | 'kind' | 'action', string>;
    const told = (events as unknown as Extended[]).map(({ content: of, name, kind, action }) => [
      of,
      name,
      kind,
      action,
    ]);
    expect(told).toEqual([
      [first.id, 'a.txt', 'attachment', 'attached'],
      [second.id, 'b.txt', 'attachment', 'attached'],
      [posted, 'c.txt', 'attachment', 'attached'],
      [second.id, 'b.txt', 'attachment', 'detached'],
      [posted, 'c.txt', 'attachment', 'deleted'],
    ]);
    const message = {
      type: 'user_message',
      text: 'look',
      resources: [{ type: 'file', file_id: (await newDraft('d')).id }],
    };
    const other = await api.newThread();
    await api.post(`/threads/${other}/events`, { body: { events: [message] } });
    const said = (await api.get(`/threads/${other}/events?extended=true`)).json.events;
    expect(said[0]).toMatchObject({ type: 'session_files.updated', name: 'd', kind: 'attachment', action: 'attached' });
  });

  test('has its threadId and kind with extended=true', async () => {
    const draft = await newDraft();
    const read = async (query: string) => (await api.get(`/files/${draft.id}${query}`)).json as unknown;
    expect(await read('')).toEqual({ file: draft });
    expect(await read('?extended=true')).toEqual({ file: { ...draft, threadId: null, kind: 'attachment' } });
    const threadId = await api.newThread();
    await attach(threadId, { fileId: draft.id });
    expect(await read('?extended=true')).toEqual({ file: { ...draft, threadId, kind: 'attachment' } });
    expect(await read('')).toEqual({ file: draft });
  });

  test('is not held open for a stalled reader', async () => {
    const patient = await ApiUnderTest.start({ settings: { DOWNLOAD_STALL_MS: 200, DATA_DIR: folder } });
    const server = patient.app.getHttpServer();
    const connections = () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
    try {
      const form = new FormData();
      form.append(...filePart(new Uint8Array(24 * 1024 * 1024)));
      const draft = await patient.call('POST', `/agents/${patient.agentId}/files`, { form });
      const { id } = (draft as unknown as FileReply).json.file;
      await patient.post(`/threads/${await patient.newThread()}/files`, { body: { fileId: id } });
      const { hostname, port, pathname } = new URL(`${patient.url}/files/${id}/content`);
      const before = await connections();
      const reader = connect(Number(port), hostname).pause();
      reader.on('error', () => undefined); // The server resets the connection.
      reader.write(`GET ${pathname} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${patient.token}\r\n\r\n`);
      await eventually(async () => (await connections()) > before, { what: 'the reader is there' });
      await eventually(async () => (await connections()) <= before, { what: 'the reader is cut off' });
      reader.destroy();
    } finally {
      await patient.stop();
    }
  });

  test.each([
    ['DELETE /files/{id}', (_: string, fileId: string) => `/files/${fileId}`],
    ['DELETE /threads/{id}/files/{id}', (threadId: string, fileId: string) => `/threads/${threadId}/files/${fileId}`],
    ['DELETE /threads/{id}', (threadId: string) => `/threads/${threadId}`],
  ])('is deleted immediately with its bytes: %s', async (_, path) => {
    const before = (await storedBlobs()).length;
    const threadId = await api.newThread();
    const { id } = (await attach(threadId, inline('gone'))).json.file;
    expect(await storedBlobs()).toHaveLength(before + 1);
    expect((await api.call('DELETE', path(threadId, id))).status).toBe(200);
    expect((await api.get(`/files/${id}`)).status).toBe(404);
    expect(await storedBlobs()).toHaveLength(before);
  });
});

describe('resources', () => {
  const message = (...ids: string[]) => ({
    type: 'user_message',
    text: 'look',
    resources: ids.map((file_id) => ({ type: 'file', file_id })),
  });

  const mounted = async (threadId: string) => {
    const query = `select data->'fileIds' as ids from events where thread_id = $1 and type = 'message.added'`;
    const { rows } = await api.pool.query<{ ids: string[] }>(query, [threadId]);
    return rows.map(({ ids }) => ids);
  };

  test('of a Thread without input wait for its first Run', async () => {
    const draft = await newDraft('a');
    const resources = [{ type: 'file', file_id: draft.id }];
    const { json } = await api.post(`/agents/${api.agentId}/threads`, { body: { userId: 'u', resources } });
    const { id } = json.thread;
    const posted = await attach(id, inline('posted'));
    await api.post(`/threads/${id}/events`, { body: { events: [message()] } });
    expect(await mounted(id)).toEqual([[draft.id, posted.json.file.id]]);
  });

  test('listed twice get 400', async () => {
    const draft = await newDraft('x');
    const threadId = await api.newThread();
    const twice = await api.post(`/threads/${threadId}/events`, { body: { events: [message(draft.id, draft.id)] } });
    expect(messageOf(twice)).toEqual([400, `Draft file ${draft.id} is listed more than once.`]);
  });
});
