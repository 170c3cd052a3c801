import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { ApiUnderTest } from '../api-under-test.testing.ts';
import { originOf, signIn } from '../console/signed-in.testing.ts';

let api: ApiUnderTest;
let threadId: string;
beforeAll(async () => {
  api = await ApiUnderTest.start();
  threadId = await api.newThread({ text: 'a long text, '.repeat(200) });
});
afterAll(() => api.stop());

interface Raw {
  status: number;
  headers: IncomingHttpHeaders;
  bytes: Buffer;
}

/** Sends a request without fetch, because fetch decodes the answer. */
function ask(path: string, headers: Record<string, string> = {}, { method = 'GET', body = '' } = {}): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const length = body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const sent = { authorization: `Bearer ${api.token}`, ...length, ...headers };
    const request = httpRequest(path.startsWith('/') ? api.url + path : path, { method, headers: sent }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes: Buffer.concat(chunks) }),
      );
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(body);
  });
}

const decode = ({ headers, bytes }: Raw): string => {
  const encoding = headers['content-encoding'];
  const plain = encoding === 'br' ? brotliDecompressSync(bytes) : encoding === 'gzip' ? gunzipSync(bytes) : bytes;
  return plain.toString();
};

test.each([
  ['br, gzip', 'br'],
  ['gzip, deflate, br, zstd', 'br'],
  ['gzip, deflate', 'gzip'],
  ['gzip;q=1.0, br;q=0.5', 'gzip'],
  ['GZIP', 'gzip'],
  ['br;q=0, *', 'gzip'],
  ['*', 'br'],
  ['gzip;q=0', undefined],
  ['identity, br;q=0.1', undefined],
  ['deflate', undefined],
  ['', undefined],
  [undefined, undefined],
])('encodes an answer over 1 KB for Accept-Encoding %s as %s', async (accepted, encoding) => {
  const path = `/threads/${threadId}/events`;
  const plain = await ask(path);
  const answer = await ask(path, accepted === undefined ? {} : { 'accept-encoding': accepted });
  const { status, headers, bytes } = answer;
  expect([status, headers['content-encoding'], headers.vary]).toEqual([200, encoding, 'Accept-Encoding']);
  expect(headers['content-type']).toBe('application/json; charset=utf-8');
  expect(Number(headers['content-length'])).toBe(bytes.length);
  expect(decode(answer)).toBe(plain.bytes.toString());
  if (encoding !== undefined) expect(bytes.length).toBeLessThan(plain.bytes.length / 2);
});

const ANY = { 'accept-encoding': 'gzip, br' };

test('HEAD has the headers of GET, and no body', async () => {
  const path = `/threads/${threadId}/events`;
  const [get, head] = await Promise.all([ask(path, ANY), ask(path, ANY, { method: 'HEAD' })]);
  expect([head.status, head.bytes.length]).toEqual([200, 0]);
  expect([head.headers['content-encoding'], head.headers['content-length']]).toEqual(['br', String(get.bytes.length)]);
});

test('replays a stored answer with the same bytes in every encoding', async () => {
  const requestId = 'r'.repeat(255);
  const message = { type: 'user_message', text: 'hi', requestId };
  const send = (accepted: string) =>
    ask(
      `/threads/${threadId}/events`,
      { 'accept-encoding': accepted, 'content-type': 'application/json', 'idempotency-key': 'once' },
      { method: 'POST', body: JSON.stringify({ events: [{ type: 'user_interrupt' }, message] }) },
    );
  const answers = [await send('br'), await send('gzip'), await send('identity')];
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(answers.map(({ headers }) => headers['content-encoding'])).toEqual(['br', 'gzip', undefined]);
  expect(answers.map(({ headers }) => headers['idempotency-replayed'])).toEqual([undefined, 'true', 'true']);
  expect(new Set(answers.map(decode)).size).toBe(1);
});

test('does not compress streams or the bytes of files', async () => {
  const contentBase64 = Buffer.alloc(5_000, 'a').toString('base64');
  const { json } = await api.post(`/threads/${threadId}/files`, {
    body: { name: 'a.json', contentType: 'application/json', contentBase64 },
  });
  const { file } = json as unknown as { file: { id: string } };
  const content = await ask(`/files/${file.id}/content`, ANY);
  expect([content.headers['content-encoding'], content.headers.vary, content.bytes.length]).toEqual([
    undefined,
    undefined,
    5_000,
  ]);
  const stream = await fetch(`${api.url}/threads/${threadId}/events/stream`, {
    headers: { authorization: `Bearer ${api.token}`, ...ANY },
  });
  expect([stream.status, stream.headers.get('content-encoding'), stream.headers.get('vary')]).toEqual([
    200,
    null,
    null,
  ]);
  await stream.body!.cancel();
});

test('an operator’s answers are compressed for a token, but not for the cookie of a session', async () => {
  const { token } = await api.access.mintToken({ kind: 'operator', name: 'Grace' });
  const overview = `${originOf(api)}/admin/v1/overview`;
  const { reads } = await signIn(api, token);
  const byToken = await ask(overview, { ...ANY, authorization: `Bearer ${token}` });
  expect([byToken.status, byToken.headers['content-encoding']]).toEqual([200, 'br']);
  const byCookie = await fetch(overview, { headers: { ...ANY, ...reads } });
  expect([byCookie.status, byCookie.headers.get('content-encoding')]).toEqual([200, null]);
  expect((await byCookie.text()).length).toBeGreaterThan(1_024);
});
