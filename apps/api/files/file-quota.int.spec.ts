import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { REASON_HEADER, type PublicFile } from '#contract';
import { ApiUnderTest } from '../api-under-test.testing.ts';

// Real: HTTP, PostgreSQL, the disk.

let api: ApiUnderTest;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spool-file-quota-'));
  api = await ApiUnderTest.start({ settings: { BLOB_URL: pathToFileURL(folder).href } });
});
afterAll(async () => {
  await api.stop();
  await rm(folder, { recursive: true });
});
afterEach(() => setQuota(null, null));

const setQuota = (files: number | null, bytes: number | null) =>
  api.access.setFileQuota(api.organizationId, files, bytes);

async function upload(text: string, key?: string): Promise<{ status: number; text: string }> {
  const form = new FormData();
  form.append('file', new Blob([text]), 'note.txt');
  const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
  return api.call('POST', `/agents/${api.agentId}/files`, { form, headers });
}

const remove = (uploaded: { text: string }) =>
  api.call('DELETE', `/files/${(JSON.parse(uploaded.text) as { file: PublicFile }).file.id}`);

/** Sends only the head of an upload. Returns status and reason of the answer. */
async function answerToHead(headers: Record<string, string>): Promise<[number | undefined, unknown]> {
  const sent = request(`${api.url}/agents/${api.agentId}/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${api.token}`, 'content-type': 'multipart/form-data; boundary=b', ...headers },
  });
  sent.on('error', () => undefined); // The request is destroyed below.
  sent.flushHeaders();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  sent.destroy();
  return [response.statusCode, response.headers[REASON_HEADER.toLowerCase()]];
}

const chunked = { 'transfer-encoding': 'chunked' };
const ofLength = (bytes: number) => ({ 'content-length': String(bytes) });
const around = 16 * 1024;

test.each([
  ['has used up its number of files', () => setQuota(0, null), chunked],
  ['has used up its bytes', () => setQuota(null, 0), chunked],
  ['has no room for the declared bytes', () => setQuota(null, 500), ofLength(501 + around)],
])('an upload is refused before its body if the organization %s', async (_, limit, headers) => {
  await limit();
  expect(await answerToHead(headers)).toEqual([413, 'file_quota_full']);
});

test('an upload is replayed by its key after the quota is used up', async () => {
  const first = await upload('same', 'before');
  await setQuota(0, 0);
  const again = await upload('same', 'before');
  expect([again.status, again.text]).toEqual([201, first.text]);
  expect((await upload('same', 'after')).status).toBe(413);
  await remove(first);
});
