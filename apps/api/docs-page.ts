import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { StaticFiles } from './http/static-files.ts';

/**
 * The page at /api/docs. All its links are relative, so it works behind a proxy under another path. It loads nothing from
 * other hosts.
 */
export const PAGE = `<!doctype html>
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
export const START = `const specUrl = new URL('v1/openapi.json', document.baseURI).href;
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

export const PAGE_HEADERS = {
  'Content-Security-Policy': POLICY,
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-cache',
};

/** The files of Swagger UI that the page loads. */
export const SWAGGER_UI = {
  prefix: '/api/docs/',
  folder: dirname(createRequire(join(import.meta.dirname, 'x.js')).resolve('swagger-ui-dist/package.json')),
  names: new Set(['swagger-ui-bundle.js', 'swagger-ui.css', 'favicon-32x32.png']),
} satisfies StaticFiles;
