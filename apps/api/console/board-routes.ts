import type { Queue } from 'bullmq';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { BeforeLookUp, RateLimiter } from '#access';
import type { Logger } from '#platform';
import type { QueueControls } from '#run-queue';
import type { Callers } from '../http/callers.ts';
import { sendError } from '../http/error-filter.ts';
import { notFound, unauthenticated } from '../http/http-errors.ts';
import { findLimited } from '../http/limit-rate.ts';
import type { QueueBoard } from './queue-board.ts';
import { hasSessionCookie } from './session-cookie.ts';

const PATH = '/console/queues';

export interface BoardRoutesParts {
  queue: Queue;
  controls: QueueControls;
  callers: Callers;
  limiter: RateLimiter;
  logger: Logger;
}

/** Bull Board, for operators who have signed in. There is nothing but GET: it shows, and changes nothing. */
export class BoardRoutes {
  private board: Promise<QueueBoard> | null = null;

  constructor(private readonly parts: BoardRoutesParts) {}

  install(fastify: FastifyInstance): void {
    const errorHandler = (error: unknown, request: FastifyRequest, reply: FastifyReply): void =>
      sendError(this.parts.logger, request, reply, error);
    for (const url of [PATH, `${PATH}/*`]) {
      fastify.route({
        method: ['GET', 'HEAD'],
        url,
        errorHandler,
        handler: (request, reply) => this.answer(request, reply),
      });
    }
  }

  private async answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { callers, limiter } = this.parts;
    const name = (request.params as { '*'?: string })['*'] ?? '';
    // The page and its files hold no data of the queue, and a browser sends no key with them. Any session cookie is enough.
    const isData = name.startsWith('api/');
    if (isData || !hasSessionCookie(request)) {
      const find = (before: BeforeLookUp) => (isData ? callers.findSession(request, before) : Promise.resolve(null));
      const session = await findLimited(limiter, request, reply, find);
      if (session === null) return refuse(request, reply);
    }
    const board = await this.load();
    if (!(await board.answer(name, request, reply))) throw notFound('path');
    return reply;
  }

  /** When it is first asked for: nobody else waits for it, and pays for it. */
  private load(): Promise<QueueBoard> {
    this.board ??= import('./queue-board.ts').then(({ QueueBoard: Board }) => new Board(PATH, this.parts));
    return this.board;
  }
}

/** Redirects a browser to the login page and back. Throws ApiError for anything else. */
function refuse(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (!isNavigation(request)) throw unauthenticated();
  return reply.redirect(`/console/login?next=${encodeURIComponent(request.url.slice('/console'.length))}`);
}

/** Whether a browser goes there, and not a script. */
function isNavigation({ headers }: FastifyRequest): boolean {
  return (headers.accept ?? '').includes('text/html');
}
