import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { RateLimiter } from '#access';
import { untilAborted, type Logger } from '#platform';
import type { Callers } from '../http/callers.ts';
import { sendError } from '../http/error-filter.ts';
import { ApiError, notFound, RETRY_SOON, unauthenticated } from '../http/http-errors.ts';
import { RequestCount } from '../http/limit-rate.ts';
import { serveFiles } from '../http/static-files.ts';
import { pageHeaders } from './page-policy.ts';
import type { QueueBoardParts } from './queue-board.ts';
import { hasSessionCookie } from './session-cookie.ts';

const PATH = '/console/queues';

/** The files of Bull Board's page. */
const UI = dirname(createRequire(join(import.meta.dirname, 'x.js')).resolve('@bull-board/ui/package.json'));

/** The reads of one queue that Bull Board's page needs. All other routes are 404, also those that a later version adds. */
const READS_OF_QUEUE = /^(?:metrics|\w{26}-\d+(?:\/(?:logs|flow))?)$/;

/** The query parameters of the page. Other values make Bull Board or the database of the queue fail. */
const QUERY = z.object({
  page: z.stringFormat('page', /^\d{1,6}$/).optional(),
  status: z.stringFormat('status', /^\w+$/).optional(),
  activeQueue: z.stringFormat('queue', /^[^%\0]*$/).optional(),
});

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

export interface BoardRoutesParts extends Pick<QueueBoardParts, 'queue' | 'controls'> {
  callers: Callers;
  limiter: RateLimiter;
  logger: Logger;
}

/** Bull Board, for operators who have signed in. Only the reads of its page are reachable. */
export class BoardRoutes {
  private board: Promise<{ server: FastifyInstance; page: string }> | null = null;

  constructor(private readonly parts: BoardRoutesParts) {}

  install(fastify: FastifyInstance): void {
    const errorHandler = (error: unknown, request: FastifyRequest, reply: FastifyReply): void =>
      sendError(this.parts.logger, request, reply, error);
    const handler = (request: FastifyRequest, reply: FastifyReply) => this.answer(request, reply);
    for (const url of [PATH, `${PATH}/*`]) fastify.route({ method: ['GET', 'HEAD'], url, errorHandler, handler });
    serveFiles(fastify, this.parts.logger, { prefix: `${PATH}/static/`, folder: join(UI, 'dist', 'static') });
  }

  private async answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { callers, limiter } = this.parts;
    const name = (request.params as { '*'?: string })['*'] ?? '';
    // The page holds no data of the queue, and a browser sends no key with it. Any session cookie is enough.
    const isData = name.startsWith('api/');
    if (isData || !hasSessionCookie(request)) {
      const count = new RequestCount(limiter, request, reply);
      const session = isData ? await callers.findSession(request, count) : null;
      await count.add(session);
      if (session === null) return refuse(request, reply);
    }
    if (isData) return this.read(name, request, reply);
    void reply.header('Cache-Control', 'no-cache');
    if (name === 'spool-key.js') return reply.type('text/javascript; charset=utf-8').send(KEY_SCRIPT);
    const { page } = await this.load();
    return reply.headers(HEADERS).type('text/html; charset=utf-8').send(page);
  }

  /** Sends the answer of Bull Board. Throws ApiError if the queue does not answer. */
  private async read(name: string, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const ofQueue = `api/queues/${this.parts.queue.name}/`;
    const isRead = name.startsWith(ofQueue)
      ? READS_OF_QUEUE.test(name.slice(ofQueue.length))
      : name === 'api/queues' || name === 'api/redis/stats';
    if (!isRead) throw notFound('path');
    const query = QUERY.safeParse(request.query);
    if (!query.success) throw wrongQuery(query.error.issues[0]?.path);
    const { server } = await this.load();
    const answer = await untilAborted(server.inject(request.url), AbortSignal.timeout(TIMEOUT_MS)).catch(
      (error: unknown) => ({ statusCode: 500, body: error, headers: {} as Record<string, unknown> }),
    );
    const { statusCode, headers, body } = answer;
    if (statusCode === 404) throw notFound('path');
    if (statusCode === 400) throw wrongQuery(refusedFields(String(body)));
    if (statusCode !== 200) {
      request.log.warn({ requestId: request.id, err: body }, 'queue page failed');
      throw new ApiError('queue_unavailable', 'The queue does not answer. Try again.', { headers: RETRY_SOON });
    }
    return reply.header('Cache-Control', 'no-store').type(String(headers['content-type'])).send(body);
  }

  /** Loads Bull Board at the first visit, so that it does not slow down the start of the process. All its pages are equal. */
  private load() {
    this.board ??= import('./queue-board.ts')
      .then(async ({ createQueueBoard }) => {
        const server = createQueueBoard({ ...this.parts, prefix: PATH, ui: UI });
        return { server, page: toOwnPage((await server.inject(PATH)).body) };
      })
      .catch((error: unknown) => {
        this.board = null;
        throw error;
      });
    return this.board;
  }
}

const wrongQuery = (path: PropertyKey[] = []) =>
  new ApiError('invalid_field', `${['query', ...path].join('.')}: is not a value that the page of the queue sends`);

/** Returns the query parameter that Bull Board names in its 400. */
function refusedFields(body: string): string[] {
  const { error } = JSON.parse(body) as { error: { options?: { field?: string } } };
  return error.options?.field === undefined ? [] : [error.options.field];
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
