import { adminOperations, operations, type AdminOperation, type Operation } from '#contract';
import { ADMIN_PATH } from '../admin/admin-routes.ts';
import { ApiUnderTest } from '../api-under-test.testing.ts';
import { BASE_PATH } from './endpoint.ts';

const ID = '01ARZ3NDEKTSV4RRFFQ69G5FAV';

let api: ApiUnderTest;
let origin: string;
beforeAll(async () => {
  api = await ApiUnderTest.start();
  origin = new URL(api.url).origin;
});
afterAll(() => api.stop());

const allowedOf = ({ headers }: Response): string[] => (headers.get('allow') ?? '').split(', ').toSorted();

/**
 * All routes, with the methods that each takes. A path can match several routes: `/tokens/identify` is also
 * `/tokens/{tokenId}`.
 */
const ROUTES: [path: string, ...methods: string[]][] = [
  ...Object.values<Operation>(operations).map(({ method, path }): [string, string, ...string[]] => [
    BASE_PATH + path,
    method,
    ...(method === 'GET' ? ['HEAD'] : []),
  ]),
  ...Object.values<AdminOperation>(adminOperations).map(({ method, path }): [string, string] => [
    ADMIN_PATH + path,
    method,
  ]),
  [`${BASE_PATH}/openapi.json`, 'GET', 'HEAD'],
  [`${ADMIN_PATH}/openapi.json`, 'GET'],
  ...['/health/live', '/health/ready', '/metrics', '/api/docs', '/api/docs/{file}', '/console/{page}'].map(
    (path): [string, ...string[]] => [path, 'GET', 'HEAD'],
  ),
  ['/console/session', 'POST', 'DELETE'],
];

function methodsOf(url: string): Set<string> {
  const isOf = (path: string) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(url);
  return new Set(ROUTES.filter(([path]) => isOf(path)).flatMap(([, ...methods]) => methods));
}

describe('a known path with a wrong method', () => {
  test('returns 405 with the methods of the path in Allow, with or without a token', async () => {
    const paths = new Set(ROUTES.map(([path]) => path.replaceAll(/\{\w+\}/g, ID)));
    for (const path of paths) {
      const methods = methodsOf(path);
      const wrong = ['PUT', 'OPTIONS', 'PROPFIND', 'POST', 'DELETE'].filter((method) => !methods.has(method));
      for (const [i, method] of wrong.entries()) {
        const headers = i % 2 === 0 ? {} : { authorization: `Bearer ${api.token}` };
        const response = await fetch(`${origin}${path}?a=b`, { method, headers });
        expect([method, path, response.status, allowedOf(response)]).toEqual([
          method,
          path,
          405,
          [...methods].toSorted(),
        ]);
        const { error } = (await response.json()) as { error: { code: string; message: string } };
        expect(error.code).toBe('invalid_request');
        expect(error.message).toBe(`Method not allowed; this path accepts ${response.headers.get('allow')}.`);
      }
    }
  });

  test('returns 405 for a body of any type before it is read', async () => {
    const headers = { 'content-type': 'text/xml', 'content-encoding': 'gzip' };
    const response = await fetch(`${api.url}/threads/${ID}`, { method: 'PUT', headers, body: 'x'.repeat(100_000) });
    expect([response.status, allowedOf(response)]).toEqual([405, ['DELETE', 'GET', 'HEAD', 'PATCH']]);
    const unknown = await fetch(`${api.url}/nope`, { method: 'PUT', headers, body: 'x' });
    expect([unknown.status, unknown.headers.get('allow')]).toEqual([404, null]);
  });

  test('answers HEAD like GET if Allow lists it', async () => {
    const threadId = await api.newThread({ text: 'hi' });
    for (const path of [`/threads/${threadId}`, `/threads/${threadId}/events`, '/openapi.json']) {
      const [get, head] = await Promise.all([api.get(path), api.call('HEAD', path)]);
      expect([path, head.status, head.text]).toEqual([path, get.status, '']);
    }
  });
});

describe('an operation that takes no body', () => {
  test.each([
    ['no Content-Type', {}, undefined],
    ['Content-Type: application/json and no body', { 'content-type': 'application/json' }, undefined],
    ['Content-Type: text/plain and no body', { 'content-type': 'text/plain' }, ''],
    ['a form without a body', { 'content-type': 'application/x-www-form-urlencoded' }, ''],
    ['an upload without a body', { 'content-type': 'multipart/form-data' }, ''],
    ['a malformed Content-Type and no body', { 'content-type': 'nonsense' }, ''],
    ['Content-Encoding: gzip and no body', { 'content-encoding': 'gzip' }, ''],
    ['a chunked body that is empty', {}, new ReadableStream({ start: (controller) => controller.close() })],
    ['a JSON body, which is ignored', { 'content-type': 'application/json' }, '{"a":1}'],
  ])('takes %s', async (_, headers: Record<string, string>, body) => {
    const threadId = await api.newThread();
    for (const action of ['archive', 'unarchive']) {
      const sent = body instanceof ReadableStream ? new ReadableStream({ start: (c) => c.close() }) : body;
      const response = await fetch(`${api.url}/threads/${threadId}/${action}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${api.token}`, ...headers },
        ...(sent === undefined ? {} : { body: sent, duplex: 'half' }),
      });
      expect([action, response.status, await response.json()]).toEqual([action, 200, { ok: true }]);
    }
  });

  test.each([
    ['text/plain', 'x'],
    ['text/plain', new ReadableStream({ start: (c) => (c.enqueue(Buffer.from('x')), c.close()) })],
    ['multipart/form-data; boundary=x', 'x'],
  ])('refuses a body of type %s with 415', async (type, body) => {
    const threadId = await api.newThread();
    const response = await fetch(`${api.url}/threads/${threadId}/archive`, {
      method: 'POST',
      headers: { authorization: `Bearer ${api.token}`, 'content-type': type },
      body,
      duplex: 'half',
    });
    expect([response.status, await response.json()]).toMatchObject([415, { error: { code: 'invalid_request' } }]);
  });
});

describe('a compressed request body', () => {
  const refusal = {
    error: {
      code: 'invalid_request',
      message: 'The body is compressed (Content-Encoding); send it uncompressed.',
    },
  };

  test.each([
    ['JSON', () => `/agents/${api.agentId}/threads`, 'application/json'],
    ['an upload', () => `/agents/${api.agentId}/files`, 'multipart/form-data; boundary=x'],
  ])('is refused with 415 before it is read: %s', async (_, path, type) => {
    const before = await api.rowCounts();
    for (const encoding of ['gzip', 'br', 'identity, gzip', 'x-unknown']) {
      const response = await fetch(api.url + path(), {
        method: 'POST',
        headers: { authorization: `Bearer ${api.token}`, 'content-type': type, 'content-encoding': encoding },
        // The body never ends, so a server that reads it first never answers.
        body: new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('{')) }),
        duplex: 'half',
      });
      expect([encoding, response.status, response.headers.get('accept-encoding')]).toEqual([encoding, 415, 'identity']);
      expect(await response.json()).toEqual(refusal);
    }
    expect(await api.rowCounts()).toEqual(before);
  });

  test('is refused after token and path are checked; identity is not compressed', async () => {
    const path = `/agents/${api.agentId}/threads`;
    const headers = { 'content-encoding': 'gzip' };
    expect((await api.post(path, { body: {}, headers, token: null })).status).toBe(401);
    expect((await api.post('/agents/x/threads', { body: {}, headers })).status).toBe(400);
    const identity = { 'content-encoding': 'Identity' };
    expect((await api.post(path, { body: { userId: 'u' }, headers: identity })).status).toBe(201);
  });
});
