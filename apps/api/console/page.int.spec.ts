import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import Fastify, { type FastifyInstance } from 'fastify';
import { createLogger } from '#platform';
import { PageRoutes } from './page-routes.ts';

// Real: HTTP, and a folder like that of the build.

const SCRIPT = 'export const text = "a script";\n'.repeat(100);
const FILES: Record<string, string | Buffer> = {
  'index.html':
    '<!doctype html><meta name="csp-nonce" content="__CSP_NONCE__" /><meta name="chat-page" content="__CHAT_PAGE__" /><script src="/console/assets/a-1.js"></script>',
  'assets/a-1.js': SCRIPT,
  'assets/a-1.js.br': brotliCompressSync(SCRIPT),
  'assets/a-1.js.gz': gzipSync(SCRIPT),
  'assets/small-1.css': 'a{}',
  '../secret.txt': 'text outside of the folder',
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

async function serve(from: string, hasChat = false): Promise<{ fastify: FastifyInstance; origin: string }> {
  const made = Fastify();
  new PageRoutes(from, createLogger('silent', 'spec'), hasChat).install(made);
  return { fastify: made, origin: await made.listen({ port: 0, host: '127.0.0.1' }) };
}

const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(`${origin}/console${path}`, { method, headers });

/** Sends the path as it is, and returns the bytes as they are: `fetch` normalizes paths and decompresses. */
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

it('serves the page at every path, with a new CSP nonce each time', async () => {
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

it('serves the chat page, and says so to the console, only if it is on', async () => {
  const read = async (at: string) => {
    const pages = await Promise.all(['/console', '/chat', '/chat/01J/01K'].map((path) => fetch(`${at}${path}`)));
    return {
      statuses: pages.map(({ status }) => status),
      isOn: /name="chat-page" content="(\w+)"/.exec(await pages[0]!.text())?.[1],
    };
  };
  expect(await read(origin)).toEqual({ statuses: [200, 404, 404], isOn: 'off' });
  const chat = await serve(folder, true);
  expect(await read(chat.origin)).toEqual({ statuses: [200, 200, 200], isOn: 'on' });
  await chat.fastify.close();
});

it('lets browsers keep its assets for a year', async () => {
  const cached = async (path: string) => {
    const { status, headers } = await get(path);
    return [status, headers.get('content-type'), headers.get('cache-control'), headers.get('x-content-type-options')];
  };
  const forAYear = 'public, max-age=31536000, immutable';
  expect(await cached('/assets/a-1.js')).toEqual([200, 'application/javascript; charset=utf-8', forAYear, 'nosniff']);
  expect(await cached('/assets/small-1.css')).toEqual([200, 'text/css; charset=utf-8', forAYear, 'nosniff']);
});

it('sends a compressed asset if the browser accepts it', async () => {
  const sent = async (path: string, accepted: string) => {
    const { headers, body } = await send(`/console${path}`, { 'accept-encoding': accepted });
    return {
      headers: headers as Record<string, string>,
      encoding: (headers as Record<string, string>)['content-encoding'],
      body,
    };
  };
  const br = await sent('/assets/a-1.js', 'gzip, deflate, br, zstd');
  expect([br.encoding, brotliDecompressSync(br.body).toString()]).toEqual(['br', SCRIPT]);
  const gzip = await sent('/assets/a-1.js', 'gzip;q=1.0, deflate');
  expect([gzip.encoding, gunzipSync(gzip.body).toString()]).toEqual(['gzip', SCRIPT]);
  const plain = await sent('/assets/a-1.js', 'identity');
  expect([plain.encoding, plain.body.toString()]).toEqual([undefined, SCRIPT]);
  expect((await sent('/assets/small-1.css', 'br')).encoding).toBeUndefined();
  for (const { headers } of [br, gzip]) expect(headers['vary']?.toLowerCase()).toContain('accept-encoding');
});

it('returns 404, not the page, for an asset of another build', async () => {
  for (const path of ['/assets/a-2.js', '/assets/', '/assets/../assets/x']) {
    const { status, body } = await send(`/console${path}`);
    expect([path, status, body.includes('<')]).toEqual([path, 404, false]);
  }
});

it.each([
  '/../secret.txt',
  '/%2e%2e/secret.txt',
  '/..%2fsecret.txt',
  '/assets/..%2f..%2fsecret.txt',
  '/..%5csecret.txt',
  '//etc/passwd',
])('sends no file outside of its folder: %s', async (path) => {
  const { body } = await send(`/console${path}`);
  expect(body.toString()).not.toContain('outside');
  expect(body.toString()).not.toContain('root:');
});

it('returns 404 before the first build', async () => {
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

it('returns 500 while its folder cannot be read, and serves it again afterwards', async () => {
  const link = join(folder, '..', 'link');
  await symlink(folder, link);
  const served = await serve(link);
  const statusOf = async (path: string) => (await fetch(`${served.origin}/console${path}`)).status;
  try {
    await rm(link);
    // A link to itself is unreadable, also for root.
    await symlink(link, link);
    expect(await statusOf('')).toBe(500);
    await rm(link);
    await symlink(folder, link);
    expect([await statusOf(''), await statusOf('/assets/a-1.js')]).toEqual([200, 200]);
  } finally {
    await served.fastify.close();
  }
});
