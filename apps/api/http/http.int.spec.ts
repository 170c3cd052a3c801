import { once } from 'node:events';
import { connect } from 'node:net';
import { pino } from 'pino';
import { adminOperations, ERROR_CODES } from '#contract';
import { DATABASE, type Database } from '#platform';
import { eventually } from '#testing';
import { ApiUnderTest } from '../api-under-test.testing.ts';
import { BASE_PATH } from './endpoint.ts';

let api: ApiUnderTest;
let origin: string;
beforeAll(async () => {
  api = await ApiUnderTest.start({ settings: { BODY_LIMIT_BYTES: 10_000 } });
  origin = new URL(api.url).origin;
});
afterAll(() => api.stop());

const threads = () => `/agents/${api.agentId}/threads`;

describe('the error envelope', () => {
  it.each([
    ['GET', '/nope', 404, 'not_found'],
    ['GET', '', 404, 'not_found'],
    ['GET', '/agents', 404, 'not_found'],
    ['POST', '/threads', 405, 'invalid_request'],
    ['PUT', '/threads/01ARZ3NDEKTSV4RRFFQ69G5FAV', 405, 'invalid_request'],
    ['PATCH', '/openapi.json', 405, 'invalid_request'],
    ['OPTIONS', '/openapi.json', 405, 'invalid_request'],
    ['PROPFIND', '/openapi.json', 405, 'invalid_request'],
    ['GET', '/threads/%zz', 400, 'invalid_request'],
    ['GET', '/threads/%00', 400, 'invalid_request'],
    ['GET', '/threads/01ARZ3NDEKTSV4RRFFQ69G5FAV/', 404, 'not_found'],
    ['GET', '/threads//events', 400, 'invalid_request'],
  ])('%s %s', async (method, path, status, code) => {
    const reply = await api.call(method, path);
    expect([reply.status, reply.json.error.code]).toEqual([status, code]);
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');
  });

  it('is returned for an id of any length', async () => {
    const { status, json } = await api.get(`/threads/${'a'.repeat(10_000)}`);
    expect([status, json.error.message]).toEqual([400, 'path.threadId: must be a ULID']);
  });

  it('is returned for paths outside of the API too', async () => {
    for (const path of ['/', '/index.html', '/api', '/api/v2/threads']) {
      const response = await fetch(origin + path);
      expect(response.status).toBe(404);
      expect(await response.json()).toEqual({ error: { code: 'not_found', message: 'There is no such path.' } });
    }
  });

  it.each([
    ['a broken request line', 'GARBAGE\r\n\r\n', 400],
    ['a space in the URL', 'GET /api/v1/a b HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['no Host', 'GET /api/v1/openapi.json HTTP/1.1\r\n\r\n', 400],
    ['two Hosts', 'GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n', 400],
    ['two Hosts on an unknown path', 'GET /nope HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n', 400],
    ['an expectation', 'GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\nExpect: a-miracle\r\n\r\n', 417],
    ['headers without end', `GET / HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(100_000)}\r\n\r\n`, 431],
    ['an unknown method', 'FLY /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ])('is returned for %s', async (_, request, status) => {
    const answer = await sendRaw(request);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(JSON.parse(answer.split('\r\n\r\n')[1]!)).toMatchObject({ error: { code: 'invalid_request' } });
  });
});

describe('a body', () => {
  it.each([
    ['that is not JSON', '{"userId":', 'invalid_json'],
    ['with a trailing comma', '{"userId":"u",}', 'invalid_json'],
    ['of two documents', '{"userId":"u"}{}', 'invalid_json'],
    ['that is not an object', '"u"', 'invalid_request'],
    ['that is null', 'null', 'invalid_request'],
  ])('%s gets 400', async (_, body, code) => {
    const { status, json } = await api.post(threads(), { body });
    expect([status, json.error.code]).toEqual([400, code]);
  });

  it('that is empty gets 400', async () => {
    const empty = await api.post(threads(), { headers: { 'content-type': 'application/json' } });
    expect([empty.status, empty.json.error.code]).toEqual([400, 'invalid_json']);
    const missing = await api.post(threads());
    expect([missing.status, missing.json.error.code]).toEqual([400, 'invalid_request']);
  });

  it('that is not UTF-8 gets 400', async () => {
    const body = Buffer.concat([Buffer.from('{"userId":"'), Buffer.from([0xff]), Buffer.from('"}')]);
    const headers = { authorization: `Bearer ${api.token}`, 'content-type': 'application/json' };
    const response = await fetch(`${api.url}${threads()}`, { method: 'POST', headers, body });
    expect([response.status, await response.json()]).toMatchObject([400, { error: { code: 'invalid_json' } }]);
  });

  it('with NUL or a lone surrogate gets 400', async () => {
    for (const userId of ['"a\\u0000"', '"\\ud800"']) {
      const { status, json } = await api.post(threads(), { body: `{"userId":${userId}}` });
      expect([status, json.error.code]).toEqual([400, 'invalid_request']);
      expect(json.error.message).toContain('userId');
    }
  });

  it('of another content type gets 415', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/xml',
      'nonsense',
      'multipart/form-data',
    ]) {
      const { status, json } = await api.post(threads(), { body: '{"userId":"u"}', headers: { 'content-type': type } });
      expect([type, status, json.error.code]).toEqual([type, 415, 'invalid_request']);
    }
    const charset = { 'content-type': 'Application/JSON; charset=utf-8' };
    expect((await api.post(threads(), { body: '{"userId":"u"}', headers: charset })).status).toBe(201);
  });

  it('over the limit gets 413 before it is read', async () => {
    const before = await api.rowCounts();
    const body = JSON.stringify({ userId: 'u', pad: 'x'.repeat(10_000) });
    const { status, json } = await api.post(threads(), { body });
    expect([status, json.error.code]).toEqual([413, 'invalid_request']);
    expect(await api.rowCounts()).toEqual(before);
    const head = `POST /api/v1${threads()} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${api.token}\r\n`;
    const announced = await sendRaw(`${head}Content-Type: application/json\r\nContent-Length: 10001\r\n\r\n`);
    expect(announced).toMatch(/^HTTP\/1.1 413 /);
    const chunked = await sendRaw(
      `${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2800\r\n${' '.repeat(0x2800)}\r\n`,
    );
    expect(chunked).toMatch(/^HTTP\/1.1 413 /);
  });

  it.each([
    ['the same', 'k', 'k', 400],
    ['two', 'a', 'b', 400],
    ['an empty one and one', '', 'b', 400],
    ['one', 'a, b', null, 201],
  ])('with %s Idempotency-Key (%j and %j) gets %s', async (_, first, second, status) => {
    const lines = [first, second].flatMap((key) => (key === null ? [] : [`Idempotency-Key: ${key}\r\n`])).join('');
    const head = `POST /api/v1${threads()} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${api.token}\r\nConnection: close\r\n`;
    const answer = await sendRaw(
      `${head}${lines}Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{"userId":"u"}`,
    );
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    if (status === 400) expect(answer).toContain('Idempotency-Key: must be sent only once');
  });

  it('is not read without a token', async () => {
    const head = `POST /api/v1${threads()} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n`;
    expect(await sendRaw(`${head}Content-Length: 9000\r\n\r\n`)).toMatch(/^HTTP\/1.1 401 /);
  });

  it('with many unknown fields gets a short answer', async () => {
    const names = Array.from({ length: 400 }, (_, i) => `"unknown ${i}":1`).join();
    const { status, json } = await api.post(threads(), { body: `{${names}}` });
    expect(status).toBe(400);
    expect(json.error.message).toContain('"unknown 3", "unknown 4" and 395 more');
    expect(json.error.message.length).toBeLessThan(600);
  });
});

describe('links', () => {
  it('have the host of the request', async () => {
    const body = '{"userId":"u"}';
    const answer = await sendRaw(
      `POST /api/v1${threads()} HTTP/1.1\r\nHost: spool.example:81\r\nConnection: close\r\n` +
        `Authorization: Bearer ${api.token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    expect(answer).toContain('"links":{"thread":"http://spool.example:81/api/v1/threads/');
  });

  it('start with PUBLIC_BASE_URL if it is set', async () => {
    const other = await ApiUnderTest.start({ settings: { PUBLIC_BASE_URL: 'https://spool.example/base/' } });
    try {
      const { json } = await other.post(`/agents/${other.agentId}/threads`, { body: { userId: 'u' } });
      expect(json.links.thread).toBe(`https://spool.example/base/api/v1/threads/${json.thread.id}`);
      const document = (await (await fetch(`${other.url}/openapi.json`)).json()) as { servers: object[] };
      expect(document.servers).toEqual([{ url: 'https://spool.example/base/api/v1' }]);
    } finally {
      await other.stop();
    }
  });
});

/** The routes outside of the two APIs. A GET route has HEAD too. */
const BESIDE = [
  ...['GET /health/live', 'GET /health/ready', 'GET /metrics', 'GET /file-links/:link'],
  ...[
    'GET /',
    'GET /api/docs/',
    'GET /api/docs',
    'GET /api/docs/start.js',
    'GET /api/docs/*',
    'GET /admin/v1/openapi.json',
  ],
  ...['GET /console', 'GET /console/*', 'GET /console/queues', 'GET /console/queues/*'],
  ...['GET /console/assets/*', 'GET /console/queues/static/*'],
  ...['POST /console/session', 'GET /console/session', 'DELETE /console/session'],
];

describe('without a token', () => {
  it('the OpenAPI document describes every route', async () => {
    const { paths } = (await (await fetch(`${api.url}/openapi.json`)).json()) as { paths: Record<string, object> };
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map(
        (method) => `${method.toUpperCase()} ${BASE_PATH}${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
      ),
    );
    const fastify = api.app.getHttpAdapter().getInstance();
    const expected = [...described, ...BESIDE];
    const routes = expected.filter((route) => {
      const [method = '', url = ''] = route.split(' ');
      return fastify.hasRoute({ method, url });
    });
    expect(routes).toEqual(expected);
    const told = expected.filter((route) => !route.startsWith('HEAD '));
    const all = fastify.printRoutes().match(/\b(GET|POST|PUT|PATCH|DELETE)\b/g);
    expect(all).toHaveLength(told.length + Object.keys(adminOperations).length);
  });

  it('the OpenAPI document has every error code', async () => {
    const response = await fetch(`${api.url}/openapi.json`);
    expect(response.status).toBe(200);
    const text = await response.text();
    expect(JSON.parse(text)).toMatchObject({ openapi: '3.1.0', servers: [{ url: '/api/v1' }] });
    for (const code of ERROR_CODES) expect(text).toContain(code);
  });

  it('liveness and readiness are returned', async () => {
    const live = await fetch(`${origin}/health/live`);
    expect([live.status, await live.json()]).toEqual([200, { status: 'ok' }]);
    const ready = [200, { status: 'ready', database: 'ok', queue: 'ok', reasons: [] }];
    const isReady = async (): Promise<boolean> => {
      const answer = await fetch(`${origin}/health/ready`);
      expect([answer.status, await answer.json()]).toEqual(ready);
      return true;
    };
    await eventually(isReady, { what: 'all parts are there' });
  });
});

it('returns 500 without details for an unexpected error', async () => {
  const { pool } = api.app.get<Database>(DATABASE);
  const query = jest.spyOn(pool, 'query').mockImplementation(() => Promise.reject(new Error('secret detail')) as never);
  try {
    const reply = await api.get('/threads/01ARZ3NDEKTSV4RRFFQ69G5FAV');
    expect([reply.status, reply.json.error.code]).toEqual([500, 'internal_error']);
    expect(reply.text).not.toContain('secret');
    expect(reply.headers.get('x-request-id')).toMatch(/^[0-9A-Z]{26}$/);
  } finally {
    query.mockRestore();
  }
});

it('sends the answer to a malformed request even if the client reads it only after sending 8 MB', async () => {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  const body = Buffer.alloc(8_000_000, 'x');
  await once(socket, 'connect');
  socket.write(`post /api/v1/threads HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`);
  // The answer is sent before most of the body has arrived.
  await new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.write(body, (error) => (error ? reject(error) : resolve(undefined)));
  });
  const answer = (await socket.setEncoding('utf8').toArray()).join('');
  expect(answer).toMatch(/^HTTP\/1.1 400 .*"invalid_request"/s);
});

it('shutdown does not wait for clients that have connected and sent nothing', async () => {
  const other = await ApiUnderTest.start();
  const { hostname, port } = new URL(other.url);
  const socket = connect(Number(port), hostname);
  const ended = new Promise((resolve) => socket.once('close', resolve)).then(() => 'ended');
  socket.on('error', () => undefined); // The server may reset the connection.
  const { server } = other.app.getHttpAdapter().getInstance();
  const connections = () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
  await eventually(async () => (await connections()) === 1, { what: 'it is connected' });
  await other.stop();
  expect(await ended).toBe('ended');
}, 30_000);

describe('the log', () => {
  it('has the X-Request-Id of the answer for every status, and a plain X-Request-Id of the caller', async () => {
    const lines: string[] = [];
    const other = await ApiUnderTest.start({ logger: pino({}, { write: (line) => lines.push(line) }) });
    const answers: [string | null, string | undefined][] = [];
    const ask = async (path: string, headers: Record<string, string>, told: string | undefined): Promise<void> => {
      const { headers: answered } = await fetch(`${other.url}${path}`, { headers });
      answers.push([answered.get('x-request-id'), told]);
    };
    try {
      await ask('/openapi.json', {}, undefined);
      await ask('/nope', { 'x-request-id': 'abc-1.2:3_4' }, 'abc-1.2:3_4');
      await ask('/threads/01ARZ3NDEKTSV4RRFFQ69G5FAV', { 'x-request-id': 'a b' }, undefined);
      await ask('/openapi.json', { 'x-request-id': 'x'.repeat(65) }, undefined);
      for (const [id] of answers) expect(id).toMatch(/^[0-9A-Z]{26}$/);
      const told = () =>
        lines
          .map((line) => JSON.parse(line) as Record<string, string>)
          .filter(({ msg }) => msg === 'request')
          .map(({ requestId, callerRequestId }) => [requestId, callerRequestId]);
      await eventually(() => told().length === 4, { what: 'all four have their line' });
      expect(told()).toEqual(answers);
    } finally {
      await other.stop();
    }
  });

  it('has one line for a stream whose reader disconnects', async () => {
    const lines: string[] = [];
    const other = await ApiUnderTest.start({ logger: pino({}, { write: (line) => lines.push(line) }) });
    try {
      const threadId = await other.newThread();
      const abort = new AbortController();
      const headers = { authorization: `Bearer ${other.token}` };
      await fetch(`${other.url}/threads/${threadId}/events/stream`, { headers, signal: abort.signal });
      abort.abort();
      const line = await eventually(() => lines.find((one) => one.includes('events/stream')), {
        what: 'it has a line',
      });
      expect(JSON.parse(line)).toMatchObject({ msg: 'request abandoned', threadId, status: 200 });
    } finally {
      await other.stop();
    }
  });

  it('has one line for each request, with ids and without token and text', async () => {
    const lines: string[] = [];
    const other = await ApiUnderTest.start({ logger: pino({}, { write: (line) => lines.push(line) }) });
    try {
      const threadId = await other.newThread({ text: 'a secret text' });
      await other.get(`/threads/${threadId}?q=secret`);
      await other.get('/nope?q=secret', { token: null });
      const { json } = await other.get(`/threads/${threadId}`);
      const told = () =>
        lines.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ msg }) => msg === 'request');
      await eventually(() => told().length === 4, { what: 'all four have their line' });
      const requests = told();
      expect(requests).toMatchObject([
        { method: 'POST', route: '/api/v1/agents/:agentId/threads', status: 201, threadId },
        { method: 'GET', route: '/api/v1/threads/:threadId', status: 200, threadId },
        { method: 'GET', status: 404 },
        { method: 'GET', status: 200, threadId },
      ]);
      for (const { requestId, ms } of requests) expect([typeof requestId, typeof ms]).toEqual(['string', 'number']);
      expect(requests[0]).toMatchObject({ runId: json.run.id });
      expect(lines.join()).not.toContain('secret');
      expect(lines.join()).not.toContain(other.token);
    } finally {
      await other.stop();
    }
  });
});

/** Sends the text unchanged, unlike fetch. Returns all bytes that come back. */
function sendRaw(request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(origin);
    let answer = '';
    const socket = connect(Number(port), hostname, () => socket.write(request));
    socket.setEncoding('utf8');
    socket.on('data', (data: string) => {
      answer += data;
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', (error) => (answer === '' ? reject(error) : resolve(answer)));
  });
}
