import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { REASON_HEADER } from '#contract';
import { faultProxy, startS3Server, type FaultProxy, type S3Server } from '#testing';
import { ApiUnderTest } from '../api-under-test.testing.ts';

// Real: HTTP, PostgreSQL, a disk and an S3 server that lose bytes.

let folder: string;
let server: S3Server;
let proxy: FaultProxy;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spool-lost-'));
  server = await startS3Server();
  proxy = await faultProxy(server.port);
});
afterAll(async () => {
  await proxy.close();
  await server.stop();
  await rm(folder, { recursive: true });
});

const s3Object = (key: string) => `http://127.0.0.1:${server.port}/spool-test/some/folder/${key}`;

describe.each([
  {
    store: 'a folder',
    blobUrl: () => pathToFileURL(folder).href,
    lose: (key: string) => rm(join(folder, key)),
    restore: (key: string, bytes: string) => writeFile(join(folder, key), bytes),
    unreachable: () => rename(folder, `${folder}-moved`),
    reachable: () => rename(`${folder}-moved`, folder),
  },
  {
    store: 'S3',
    blobUrl: () => server.blobUrl(proxy.port),
    lose: (key: string) => fetch(s3Object(key), { method: 'DELETE' }),
    restore: (key: string, body: string) => fetch(s3Object(key), { method: 'PUT', body }),
    unreachable: () => Promise.resolve(proxy.cut()),
    reachable: () => Promise.resolve(proxy.resume()),
  },
])('bytes that $store has lost', ({ blobUrl, lose, restore, unreachable, reachable }) => {
  let api: ApiUnderTest;
  beforeAll(async () => {
    api = await ApiUnderTest.start({ settings: { BLOB_URL: blobUrl() } });
  });
  afterAll(() => api.stop());

  async function newFile(bytes: string): Promise<{ fileId: string; key: string }> {
    const body = { name: 'a.txt', contentType: 'text/plain', contentBase64: Buffer.from(bytes).toString('base64') };
    const { json } = await api.post(`/threads/${await api.newThread()}/files`, { body });
    const fileId = (json as unknown as { file: { id: string } }).file.id;
    const { rows } = await api.pool.query<{ key: string }>('select blob_key as key from files where id = $1', [fileId]);
    return { fileId, key: rows[0]!.key };
  }
  const read = async (fileId: string, method = 'GET', headers: Record<string, string> = {}) => {
    const authorization = `Bearer ${api.token}`;
    const answer = await fetch(`${api.url}/files/${fileId}/content`, {
      method,
      headers: { authorization, ...headers },
    });
    return { status: answer.status, reason: answer.headers.get(REASON_HEADER), text: await answer.text(), answer };
  };
  const lostAt = async (fileId: string) =>
    (await api.pool.query<{ at: string | null }>('select lost_at as at from files where id = $1', [fileId])).rows[0]
      ?.at;

  test('get 410 for GET, ranges and HEAD and are recorded, until they are restored', async () => {
    const { fileId, key } = await newFile('hello');
    expect((await read(fileId)).text).toBe('hello');
    expect((await read(fileId, 'HEAD')).answer.headers.get('content-length')).toBe('5');
    await lose(key);
    for (const headers of [{}, { range: 'bytes=1-2' }, { 'accept-encoding': 'gzip' }] as Record<string, string>[]) {
      const { status, reason, text, answer } = await read(fileId, 'GET', headers);
      expect([status, reason]).toEqual([410, 'content_lost']);
      expect(JSON.parse(text)).toMatchObject({ error: { code: 'not_found' } });
      expect(answer.headers.get('content-type')).toMatch('application/json');
      expect(answer.headers.get('content-disposition')).toBeNull();
    }
    const head = await read(fileId, 'HEAD');
    expect([head.status, head.reason, head.text]).toEqual([410, 'content_lost', '']);
    const since = await lostAt(fileId);
    expect(since).toMatch(/^20/);
    await read(fileId);
    expect(await lostAt(fileId)).toEqual(since);
    await restore(key, 'hello');
    expect((await read(fileId)).text).toBe('hello');
    expect(await lostAt(fileId)).toBeNull();
  });

  test('can still be deleted', async () => {
    const { fileId, key } = await newFile('hello');
    await lose(key);
    expect((await read(fileId)).status).toBe(410);
    expect((await api.call('DELETE', `/files/${fileId}`)).status).toBe(200);
    expect((await read(fileId)).status).toBe(404);
  });

  test('get 503 and are not recorded as lost while the storage is unreachable', async () => {
    const { fileId } = await newFile('hello');
    await unreachable();
    try {
      const { status, reason } = await read(fileId);
      expect([status, reason]).toEqual([503, 'storage_unavailable']);
      expect((await read(fileId, 'HEAD')).status).toBe(503);
    } finally {
      await reachable();
    }
    expect(await lostAt(fileId)).toBeNull();
    expect((await read(fileId)).status).toBe(200);
  });
});
