import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '#platform';
import { sendError } from '../http/error-filter.ts';
import { notFound } from '../http/http-errors.ts';
import { pageHeaders } from './page-policy.ts';

/** An agent that the page names. The page is public, so only `npm start` names its own agents. */
export interface NamedAgent {
  id: string;
  name: string;
  description: string;
}

/** The page at `/` for people, with links to all pages of this process. Other clients get the 404 of an unknown path. */
export class StartPage {
  agents: readonly NamedAgent[] = [];

  constructor(
    private readonly logger: Logger,
    private readonly hasChat: boolean,
  ) {}

  install(fastify: FastifyInstance): void {
    const errorHandler = (error: unknown, request: FastifyRequest, reply: FastifyReply): void =>
      sendError(this.logger, request, reply, error);
    const method = ['GET', 'HEAD'];
    fastify.route({ method, url: '/', errorHandler, handler: async (request, reply) => this.answer(request, reply) });
    // Relative, for proxies that serve Spool below a path.
    const toDocs = async (_: FastifyRequest, reply: FastifyReply) => reply.redirect('../docs', 308);
    fastify.route({ method, url: '/api/docs/', errorHandler, handler: toDocs });
  }

  private answer({ headers }: FastifyRequest, reply: FastifyReply): FastifyReply {
    void reply.header('Vary', 'Accept');
    if (!/\btext\/html\b/.test(headers.accept ?? '')) throw notFound('path');
    return reply.headers(HEADERS).type('text/html; charset=utf-8').send(render(this.agents, this.hasChat));
  }
}

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 42rem; margin: 3rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; }
ul { padding-left: 1.2rem; }
li { margin: .5rem 0; }
code { overflow-wrap: anywhere; }
`;

const HEADERS = pageHeaders({ style: `'sha256-${createHash('sha256').update(STYLE).digest('base64')}'` });

const CHAT = ['chat', 'Chat', 'talk with an agent in the browser'] as const;
const LINKS = [
  ['console', 'Console', 'Threads, Runs, queues and agents, for operators'],
  ['api/docs', 'API reference', 'read it and try it'],
  ['api/v1/openapi.json', 'OpenAPI document', 'for generated clients'],
  ['health/ready', 'Readiness', 'what works and what does not'],
] as const;

function render(agents: readonly NamedAgent[], hasChat: boolean): string {
  const links = [...(hasChat ? [CHAT] : []), ...LINKS].map(
    ([href, title, what]) => `<li><a href="${href}">${title}</a>: ${what}</li>`,
  );
  const named = agents.map(({ id, name, description }) => {
    const [first = ''] = /^[^.:]+/.exec(description) ?? [];
    const title = hasChat ? `<a href="chat/${escape(id)}">${escape(name)}</a>` : `<b>${escape(name)}</b>`;
    return `<li>${title}: ${escape(first)}<br><code>${escape(id)}</code></li>`;
  });
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Spool</title>
    <link rel="icon" href="data:," />
    <style>${STYLE}</style>
  </head>
  <body>
    <main>
      <h1>Spool</h1>
      <p>Durable Agent Threads for any application. This service is running.</p>
      <ul>${links.join('\n')}</ul>
      ${named.length > 0 ? `<h2>Agents</h2>\n<ul>${named.join('\n')}</ul>` : ''}
      <p>The documents are in the folder <code>docs</code> of the checkout. Begin with <code>docs/README.md</code>.</p>
    </main>
  </body>
</html>
`;
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
