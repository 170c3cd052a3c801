import { request } from 'node:http';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { openApiDocument } from '#contract';
import { ApiUnderTest } from './api-under-test.testing.ts';

let api: ApiUnderTest;
let page: string;
beforeAll(async () => {
  api = await ApiUnderTest.start({ settings: { PUBLIC_BASE_URL: 'https://spool.example/base' } });
  page = `${new URL(api.url).origin}/api/docs`;
});
afterAll(() => api.stop());

/** Returns the URLs that a browser would load from the page. */
function namesOf(html: string): string[] {
  return [...html.matchAll(/\b(?:src|href)="([^"]+)"/g)].map(([, name]) => name!);
}

it('needs no token, and has a policy that forbids inline code and other hosts', async () => {
  const response = await fetch(page);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  const policy = response.headers.get('content-security-policy')!;
  expect(policy).toMatch(/^default-src 'none'; /);
  expect(policy).not.toMatch(/unsafe|\*|https?:/);
  const html = await response.text();
  expect(html).not.toMatch(/https?:|<script>|<style|\bon\w+=|style=/);
});

it('names only existing files by relative URLs, each with its type', async () => {
  const names = namesOf(await (await fetch(page)).text());
  expect(names).toEqual([
    'docs/favicon-32x32.png',
    'docs/swagger-ui.css',
    'v1/openapi.json',
    'docs/swagger-ui-bundle.js',
    'docs/start.js',
  ]);
  const types: Record<string, string> = {
    png: 'image/png',
    css: 'text/css',
    js: 'application/javascript',
    json: 'application/json',
  };
  for (const name of names) {
    const url = new URL(name, page);
    const response = await fetch(url);
    const body = await response.arrayBuffer();
    expect([name, response.status, body.byteLength > 100]).toEqual([name, 200, true]);
    expect(response.headers.get('content-type')).toContain(types[name.split('.').at(-1)!]);
    if (name.startsWith('v1')) continue;
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.get('cache-control')).toBe('no-cache');
    const head = await fetch(url, { method: 'HEAD' });
    expect([head.status, Number(head.headers.get('content-length'))]).toEqual([200, body.byteLength]);
  }
});

it('does not send the document to a validator', async () => {
  const start = await (await fetch(`${page}/start.js`)).text();
  expect(start).toContain('validatorUrl: null');
  expect(start).not.toMatch(/https?:/);
});

it('with a slash behind it, leads to the page', async () => {
  const response = await fetch(`${page}/`, { redirect: 'manual' });
  expect([response.status, response.headers.get('location')]).toEqual([308, '../docs']);
  expect((await fetch(`${page}/`)).url).toBe(page);
});

it.each([
  '/other.js',
  '/package.json',
  '/swagger-ui.js',
  '/swagger-ui-bundle.js/',
  '/..%2fpackage.json',
  '/%2e%2e%2fpackage.json',
  '/../package.json',
  '/..%5cpackage.json',
  '/swagger-ui.css%00.png',
  '/__proto__',
  '/constructor',
  '/docs/swagger-ui.css',
  '/%2fetc%2fpasswd',
])('%s is not a file of the page', async (path) => {
  const { status, body } = await getRaw(page + path);
  expect([status, JSON.parse(body)]).toEqual([
    404,
    { error: { code: 'not_found', message: 'There is no such path.' } },
  ]);
});

describe('the OpenAPI document describes', () => {
  const { paths, components } = openApiDocument('/api/v1') as unknown as {
    paths: Record<string, Record<string, { responses: Record<number, Described & { $ref?: string }> }>>;
    components: { responses: Record<string, Described> };
  };
  const ajv = new Ajv2020({ strict: false, formats: { ulid: true } });

  /** Sends the request, and compares status, type and headers with the document. */
  async function call(method: string, path: string, id: string, headers: Record<string, string> = {}) {
    const url = `${api.url}${path.replace(/\{\w+\}/, id)}${path.endsWith('stream') ? '?until=idle' : ''}`;
    const response = await fetch(url, { method, headers: { authorization: `Bearer ${api.token}`, ...headers } });
    const { status } = response;
    const stated = paths[path]?.[method.toLowerCase()]?.responses[status];
    const described = stated?.$ref ? components.responses[stated.$ref.split('/').at(-1)!] : stated;
    const body = Buffer.from(await response.arrayBuffer());
    const wrong = Object.entries(described!.headers).filter(([name, { required = false, schema }]) => {
      const value = response.headers.get(name);
      if (value === null) return required;
      return !ajv.validate(schema, schema.type === 'integer' ? Number(value) : value);
    });
    expect([method, path, status, wrong]).toEqual([method, path, status, []]);
    const type = response.headers.get('content-type')?.split(';')[0];
    if (method !== 'HEAD') expect(Object.keys(described?.content ?? {})).toEqual(type === undefined ? [] : [type]);
    return { status, body, etag: response.headers.get('etag')! };
  }

  it('downloads, GET and HEAD', async () => {
    const inline = { name: 'hé.txt', contentType: 'text/plain', contentBase64: 'SGVsbG8h' };
    const { json } = await api.post(`/threads/${await api.newThread()}/files`, { body: inline });
    const { id } = (json as unknown as { file: { id: string } }).file;
    const content = '/files/{fileId}/content';
    for (const method of ['GET', 'HEAD']) {
      const { status, etag } = await call(method, content, id);
      const others = [
        (await call(method, content, id, { range: 'bytes=1-2' })).status,
        (await call(method, content, id, { 'if-none-match': etag })).status,
        (await call(method, content, id, { range: 'bytes=100-' })).status,
        (await call(method, content, id, { authorization: 'Bearer none' })).status,
        (await call(method, content, '01ARZ3NDEKTSV4RRFFQ69G5FAV')).status,
        (await call(method, content, 'x')).status,
      ];
      // Only GET has ranges.
      const [part, outside] = method === 'GET' ? [206, 416] : [200, 200];
      expect([method, status, ...others]).toEqual([method, 200, part, 304, outside, 401, 404, 400]);
    }
  });

  it('streams', async () => {
    const path = '/threads/{threadId}/events/stream';
    const threadId = await api.newThread();
    const { status, body } = await call('GET', path, threadId);
    expect([status, body.toString()]).toEqual([
      200,
      expect.stringMatching(/^: connected\nretry: \d+\nevent: thread.idle/),
    ]);
    expect((await call('GET', path, 'x')).status).toBe(400);
    const { status: archived } = await api.post(`/threads/${threadId}/archive`);
    expect(archived).toBe(200);
    const { events } = (await api.get(`/threads/${threadId}/events`)).json as unknown as { events: { id: string }[] };
    expect((await call('GET', path, threadId, { 'last-event-id': events.at(-1)!.id })).status).toBe(204);
  });
});

interface Described {
  headers: Record<string, { required?: boolean; schema: { type?: string } }>;
  content?: object;
}

/** Requests the path unchanged, because fetch would resolve `/../` and `%2e%2e`. */
function getRaw(url: string): Promise<{ status: number | undefined; body: string }> {
  const { hostname, port, origin } = new URL(url);
  return new Promise((resolve, reject) => {
    request({ hostname, port, path: url.slice(origin.length) }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (data: string) => {
        body += data;
      });
      response.on('end', () => resolve({ status: response.statusCode, body }));
    })
      .on('error', reject)
      .end();
  });
}
