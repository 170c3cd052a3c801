import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RateLimiter } from '#access';
import { untilAborted, type Logger } from '#platform';
import type { Callers } from '../http/callers.ts';
import { sendError } from '../http/error-filter.ts';
import { ApiError, notFound, unauthenticated } from '../http/http-errors.ts';
import { RequestCount } from '../http/limit-rate.ts';
import { pageHeaders } from './page-policy.ts';
import type { createQueueBoard, QueueBoardParts } from './queue-board.ts';
import { hasSessionCookie } from './session-cookie.ts';

const PATH = '/console/queues';

/** If Redis is unavailable when the process starts, BullMQ waits for it without a limit. */
const TIMEOUT_MS = 3_000;

/** The hash is that of the style in Bull Board's picture of Redis. */
const HEADERS = pageHeaders({ style: "'sha256-r2N1TB/gHbBtBZFKg7ejmq1acVSREzucTAEw6ga4hoU='", base: "'self'" });

/** Adds the page key (apps/console/src/api/page-key.ts) to Bull Board's requests, and opens the login page after a 401. */
const KEY_SCRIPT = `const { open } = XMLHttpRequest.prototype;
XMLHttpRequest.prototype.open = function (...args) {
  open.apply(this, args);
  this.setRequestHeader('Spool-Page-Key', localStorage.getItem('spool-page-key') ?? '');
  this.addEventListener('load', () => {
    const next = (location.pathname + location.search).slice('/console'.length);
    if (this.status === 401) location.assign('/console/login?next=' + encodeURIComponent(next));
  });
};
`;

export interface BoardRoutesParts extends QueueBoardParts {
  callers: Callers;
  limiter: RateLimiter;
  logger: Logger;
}

/** Bull Board, for operators who have signed in. Only its GET routes are reachable. */
export class BoardRoutes {
  private board: Promise<ReturnType<typeof createQueueBoard>> | null = null;

  constructor(private readonly parts: BoardRoutesParts) {}

  install(fastify: FastifyInstance): void {
    const errorHandler = (error: unknown, request: FastifyRequest, reply: FastifyReply): void =>
      sendError(this.parts.logger, request, reply, error);
    const handler = (request: FastifyRequest, reply: FastifyReply) => this.answer(request, reply);
    for (const url of [PATH, `${PATH}/*`]) fastify.route({ method: ['GET', 'HEAD'], url, errorHandler, handler });
  }

  private async answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { callers, limiter } = this.parts;
    const name = (request.params as { '*'?: string })['*'] ?? '';
    // The page and its files hold no data of the queue, and a browser sends no key with them. Any session cookie is enough.
    const isData = name.startsWith('api/');
    if (isData || !hasSessionCookie(request)) {
      const count = new RequestCount(limiter, request, reply);
      const session = isData ? await callers.findSession(request, count) : null;
      await count.add(session);
      if (session === null) return refuse(request, reply);
    }
    if (name === 'spool-key.js') return reply.type('text/javascript; charset=utf-8').send(KEY_SCRIPT);
    const { server, files } = await this.load();
    if (name.startsWith('static/')) {
      if (await files.send(name.slice('static/'.length), request, reply)) return reply;
      throw notFound('path');
    }
    // All its pages are the same. `inject` resolves dots in a path, so another path could lead to data without a session.
    const { statusCode, headers, body } = await this.ask(server, isData ? request.url : PATH, request);
    void reply.code(statusCode).type(String(headers['content-type']));
    return isData ? reply.header('Cache-Control', 'no-store').send(body) : reply.headers(HEADERS).send(toOwnPage(body));
  }

  /** Throws ApiError if the queue does not answer. */
  private async ask(server: FastifyInstance, url: string, { id: requestId, log }: FastifyRequest) {
    try {
      const answer = await untilAborted(server.inject(url), AbortSignal.timeout(TIMEOUT_MS));
      if (answer.statusCode < 500) return answer;
      throw new Error(answer.body);
    } catch (error) {
      log.warn({ requestId, err: error }, 'queue page failed');
      throw new ApiError('queue_unavailable', 'The queue does not answer. Try again.');
    }
  }

  /** Loads Bull Board at the first visit, so that it does not slow down the start of the process. */
  private load() {
    this.board ??= import('./queue-board.ts').then((loaded) => loaded.createQueueBoard(PATH, this.parts));
    return this.board;
  }
}

/** Adds the script with the key. Removes what the policy forbids: the fonts of another site, and style inside the page. */
function toOwnPage(html: string): string {
  return html
    .replaceAll(/<link[^>]* href="https?:[^>]*>|<style>[^<]*<\/style>| style="[^"]*"/g, '')
    .replace('</head>', '<script src="spool-key.js"></script></head>');
}

/** Redirects a browser to the login page and back. Throws ApiError for anything else. */
function refuse(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (!(request.headers.accept ?? '').includes('text/html')) throw unauthenticated();
  return reply.redirect(`/console/login?next=${encodeURIComponent(request.url.slice('/console'.length))}`);
}
