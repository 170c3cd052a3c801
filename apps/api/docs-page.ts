import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** A file of the page, ready to be sent. */
export interface DocsFile {
  type: string;
  bytes: Buffer;
  etag: string;
  headers: Readonly<Record<string, string>>;
}

/**
 * The page at /api/docs. All its links are relative, so it works behind a proxy under another path. It loads nothing from
 * other hosts.
 */
const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Agent Threads API</title>
    <link rel="icon" type="image/png" href="docs/favicon-32x32.png" />
    <link rel="stylesheet" href="docs/swagger-ui.css" />
  </head>
  <body>
    <div id="page"></div>
    <noscript>This page needs JavaScript. The document itself: <a href="v1/openapi.json">v1/openapi.json</a></noscript>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/start.js"></script>
  </body>
</html>
`;

/**
 * The script of the page. It is a separate file, because the policy below forbids inline scripts. Sends requests to the host
 * of the page: the policy or the network may block the public address that the document names.
 */
const START = `const specUrl = new URL('v1/openapi.json', document.baseURI).href;
const beside = (spec) => ({ ...spec, servers: [{ url: new URL('v1', document.baseURI).href }] });

SwaggerUIBundle({
  dom_id: '#page',
  url: specUrl,
  deepLinking: true,
  displayRequestDuration: true,
  // Without this, the document would be sent to a validator of Swagger.
  validatorUrl: null,
  responseInterceptor: (response) => {
    if (response.url === specUrl && response.ok) {
      const text = JSON.stringify(beside(JSON.parse(response.text)));
      Object.assign(response, { text, data: text, body: JSON.parse(text), obj: JSON.parse(text) });
    }
    return response;
  },
});
`;

/** Forbids other hosts, inline scripts and styles, and frames. The style sheet has `data:` images. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HTML = 'text/html; charset=utf-8';
const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';

const assets = dirname(createRequire(join(import.meta.dirname, 'x.js')).resolve('swagger-ui-dist/package.json'));
const asset = (name: string) => () => readFile(join(assets, name));

/** The files that are served. Any other name is not found, even if such a file is on the disk. */
const FILES = new Map<string, { type: string; read: () => Promise<Buffer> }>([
  ['index.html', { type: HTML, read: async () => Buffer.from(PAGE) }],
  ['start.js', { type: SCRIPT, read: async () => Buffer.from(START) }],
  ['swagger-ui-bundle.js', { type: SCRIPT, read: asset('swagger-ui-bundle.js') }],
  ['swagger-ui.css', { type: STYLE, read: asset('swagger-ui.css') }],
  ['favicon-32x32.png', { type: 'image/png', read: asset('favicon-32x32.png') }],
]);

/** The files of the page. Each is read on its first request. */
export class DocsPage {
  private readonly found = new Map<string, Promise<DocsFile>>();

  /** Returns null if the page has no such file. */
  async find(name: string): Promise<DocsFile | null> {
    const file = FILES.get(name);
    if (file === undefined) return null;
    const known = this.found.get(name) ?? load(file);
    this.found.set(name, known);
    // Tries again at the next request if the file could not be read.
    known.catch(() => this.found.delete(name));
    return known;
  }
}

async function load({ type, read }: { type: string; read: () => Promise<Buffer> }): Promise<DocsFile> {
  const bytes = await read();
  const etag = `"${createHash('sha256').update(bytes).digest('hex')}"`;
  const policy = { 'Content-Security-Policy': POLICY, 'Referrer-Policy': 'no-referrer' };
  return { type, bytes, etag, headers: { 'X-Content-Type-Options': 'nosniff', ...(type === HTML ? policy : {}) } };
}
