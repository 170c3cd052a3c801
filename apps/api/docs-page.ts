import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** A file of the page, as it is sent. */
export interface DocsFile {
  type: string;
  bytes: Buffer;
  etag: string;
  headers: Readonly<Record<string, string>>;
}

/**
 * The page at /api/docs. Every address in it is relative to where it is served, so it works behind a proxy that has it
 * under another path; nothing comes from another host.
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
 * A file of its own because the policy below allows no script within the page. Requests go to where the page is, whatever
 * public address the document names: that may be one that the policy, or the network, does not let the reader reach.
 */
const START = `const specUrl = new URL('v1/openapi.json', document.baseURI).href;
const beside = (spec) => ({ ...spec, servers: [{ url: new URL('v1', document.baseURI).href }] });

SwaggerUIBundle({
  dom_id: '#page',
  url: specUrl,
  deepLinking: true,
  displayRequestDuration: true,
  // Else the document goes to a host of Swagger's to be judged.
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

/** Nothing from elsewhere, nothing inline, not in a frame. Pictures within the style sheet are `data:`. */
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

/** All that is served: a name that is not here is not found, whatever is on the disk. */
const FILES = new Map<string, { type: string; read: () => Promise<Buffer> }>([
  ['index.html', { type: HTML, read: async () => Buffer.from(PAGE) }],
  ['start.js', { type: SCRIPT, read: async () => Buffer.from(START) }],
  ['swagger-ui-bundle.js', { type: SCRIPT, read: asset('swagger-ui-bundle.js') }],
  ['swagger-ui.css', { type: STYLE, read: asset('swagger-ui.css') }],
  ['favicon-32x32.png', { type: 'image/png', read: asset('favicon-32x32.png') }],
]);

/** The files of the page, read when they are first asked for. */
export class DocsPage {
  private readonly found = new Map<string, Promise<DocsFile>>();

  /** Null where the page has no such file. */
  async find(name: string): Promise<DocsFile | null> {
    const file = FILES.get(name);
    if (file === undefined) return null;
    const known = this.found.get(name) ?? load(file);
    this.found.set(name, known);
    // A file that could not be read now may be another time.
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
