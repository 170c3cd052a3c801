import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import Fastify, { type FastifyInstance } from 'fastify';
import { createLogger } from '#platform';
import { PageRoutes } from './page-routes.ts';

// Real: HTTP, a folder such as the build leaves.

const SCRIPT = 'export const text = "a script that is long enough to be compressed";\n'.repeat(100);
const FILES = {
  'index.html':
    '<!doctype html><meta name="csp-nonce" content="__CSP_NONCE__" /><script src="/console/assets/a-1.js"></script>',
  'icon.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
  'assets/a-1.js': SCRIPT,
  'assets/small-1.css': 'a{}',
  '../secret.txt': 'secret',
};

let folder: string;
let fastify: FastifyInstance;
let origin: string;

beforeAll(async () => {
  folder = join(await mkdtemp(join(tmpdir(), 'spool-console-')), 'page');
  await mkdir(join(folder, 'assets'), { recursive: true });
  for (const [name, text] of Object.entries(FILES)) await writeFile(join(folder, name), text);
  ({ fastify, origin } = await serve(folder));
});
afterAll(async () => {
  await fastify.close();
  await rm(join(folder, '..'), { recursive: true });
});

async function serve(from: string): Promise<{ fastify: FastifyInstance; origin: string }> {
  const made = Fastify();
  new PageRoutes(from, createLogger('silent', 'spec')).install(made);
  return { fastify: made, origin: await made.listen({ port: 0, host: '127.0.0.1' }) };
}

const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(`${origin}/console${path}`, { method, headers });

/** As it stands: `fetch` tidies paths up, and unpacks. */
function send(
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: object; body: Buffer }> {
  const { port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ host: '127.0.0.1', port, path, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.on('error', reject).end();
  });
}

it('is the page at every path, each time with another number that its policy names', async () => {
  const nonces = new Set<string>();
  for (const path of ['', '/', '/threads/01J', '/runs?status=failed', '/a/b.c/d', '/index.html']) {
    const page = await get(path);
    const html = await page.text();
    const nonce = /content="([\w-]{22})"/.exec(html)?.[1] ?? '';
    expect([path, page.status, page.headers.get('content-type')]).toEqual([path, 200, 'text/html; charset=utf-8']);
    expect(page.headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; " +
        `style-src 'self' 'nonce-${nonce}'; ` +
        "img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    );
    expect(Object.fromEntries(page.headers)).toMatchObject({
      'cache-control': 'no-cache',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
    });
    nonces.add(nonce);
  }
  expect(nonces.size).toBe(6);
  const head = await get('/runs', {}, 'HEAD');
  expect([head.status, await head.text()]).toEqual([200, '']);
});

it('has files with a hash in their name kept for good, and others asked for again', async () => {
  const cached = async (path: string) => {
    const { status, headers } = await get(path);
    return [status, headers.get('content-type'), headers.get('cache-control'), headers.get('x-content-type-options')];
  };
  const forGood = 'public, max-age=31536000, immutable';
  expect(await cached('/assets/a-1.js')).toEqual([200, 'text/javascript; charset=utf-8', forGood, 'nosniff']);
  expect(await cached('/assets/small-1.css')).toEqual([200, 'text/css; charset=utf-8', forGood, 'nosniff']);
  expect(await cached('/icon.svg')).toEqual([200, 'image/svg+xml', 'no-cache', 'nosniff']);
  const etag = (await get('/icon.svg')).headers.get('etag')!;
  const again = await get('/icon.svg', { 'if-none-match': `"x", ${etag}` });
  expect([again.status, await again.text()]).toEqual([304, '']);
  expect((await get('/icon.svg', { 'if-none-match': '"x"' })).status).toBe(200);
});

it('compresses what is worth it, as the browser takes it', async () => {
  const sent = async (path: string, accepted: string) => {
    const { headers, body } = await send(`/console${path}`, { 'accept-encoding': accepted });
    return { encoding: (headers as Record<string, string>)['content-encoding'], body };
  };
  const br = await sent('/assets/a-1.js', 'gzip, deflate, br, zstd');
  expect([br.encoding, brotliDecompressSync(br.body).toString()]).toEqual(['br', SCRIPT]);
  const gzip = await sent('/assets/a-1.js', 'gzip;q=1.0, deflate');
  expect([gzip.encoding, gunzipSync(gzip.body).toString()]).toEqual(['gzip', SCRIPT]);
  const plain = await sent('/assets/a-1.js', 'identity');
  expect([plain.encoding, plain.body.toString()]).toEqual([undefined, SCRIPT]);
  expect((await sent('/assets/small-1.css', 'br')).encoding).toBeUndefined();
  const etags = await Promise.all(
    ['br', 'gzip', 'identity'].map(
      async (accepted) => (await send('/console/assets/a-1.js', { 'accept-encoding': accepted })).headers,
    ),
  );
  expect(new Set(etags.map((headers) => (headers as { etag: string }).etag)).size).toBe(3);
});

it('is not the page in the place of a file of another build', async () => {
  for (const path of ['/assets/a-2.js', '/assets/', '/assets/../assets/x']) {
    const { status, body } = await send(`/console${path}`);
    expect([path, status, JSON.parse(body.toString())]).toEqual([
      path,
      404,
      { error: expect.objectContaining({ code: 'not_found' }) as unknown },
    ]);
  }
});

it.each([
  '/../secret.txt',
  '/%2e%2e/secret.txt',
  '/..%2fsecret.txt',
  '/assets/..%2f..%2fsecret.txt',
  '/..%5csecret.txt',
  '//etc/passwd',
])('never leaves its folder: %s', async (path) => {
  const { body } = await send(`/console${path}`);
  expect(body.toString()).not.toContain('secret');
  expect(body.toString()).not.toContain('root:');
});

it('looks again where its folder could not be read', async () => {
  const later = join(folder, '..', 'later');
  await writeFile(later, 'no folder');
  const { fastify: made, origin: from } = await serve(later);
  try {
    expect((await fetch(`${from}/console`)).status).toBe(500);
    await rm(later);
    await mkdir(later);
    await writeFile(join(later, 'index.html'), FILES['index.html']);
    expect((await fetch(`${from}/console`)).status).toBe(200);
  } finally {
    await made.close();
  }
});

it('says that there is no build', async () => {
  const none = await serve(join(folder, 'none'));
  try {
    const response = await fetch(`${none.origin}/console`);
    expect([response.status, await response.json()]).toEqual([
      404,
      { error: { code: 'not_found', message: 'The console is not built: run `npm run build`.' } },
    ]);
  } finally {
    await none.fastify.close();
  }
});
