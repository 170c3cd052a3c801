import type { ServerResponse } from 'node:http';
import { LogController, type FastifyReply, type FastifyRequest } from 'fastify';
import { metrics } from '../metrics.ts';

/** What is counted by its name; the parser knows thirty more, which nobody uses here. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Of a request that is over: where its caller was gone before there was an answer it is 499, as nginx has it. */
export const statusOf = ({ headersSent, statusCode }: ServerResponse): number => (headersSent ? statusCode : 499);

/** Of another's log, to be found in ours: nothing but short plain words, which cannot be taken for anything else. */
const CALLER_REQUEST_ID = /^[\w.:-]{1,64}$/;

/**
 * One line and one count a request, when its connection is done with it: also of those that were cut off, which Fastify's own
 * hooks do not tell of. Ids only: never the token, the URL's query or the text of a message.
 */
export class RequestLog extends LogController {
  override incomingRequest(request: FastifyRequest, reply: FastifyReply): void {
    const startedAt = performance.now();
    metrics.httpOpen.inc();
    // What a caller reports can be found in the log. Set here, no answer is without it.
    reply.raw.setHeader('X-Request-Id', request.id);
    reply.raw.once('close', () => this.closed(request, reply, performance.now() - startedAt));
  }

  /** Its line would hold the URL. */
  override routeNotFound(): void {}

  override requestCompleted(): void {}

  private closed(request: FastifyRequest, reply: FastifyReply, elapsedMs: number): void {
    const { id: requestId, method, trail, log, headers } = request;
    const { url: route, config } = request.routeOptions;
    const isAbandoned = !reply.raw.writableFinished;
    const status = statusOf(reply.raw);
    const counted = { method: METHODS.has(method) ? method : 'OTHER', route: route ?? 'unknown' };
    metrics.httpOpen.dec();
    metrics.httpRequests.inc({ ...counted, status });
    // These last for as long as their readers like.
    const isFollowing = config.operation?.answer === 'event_stream' || config.adminOperation?.form === 'lines';
    if (!isFollowing) metrics.httpSeconds.observe(counted, elapsedMs / 1_000);
    const given = headers['x-request-id'];
    const callerRequestId = typeof given === 'string' && CALLER_REQUEST_ID.test(given) ? given : undefined;
    const ids = { requestId, callerRequestId, threadId: trail?.threadId, runId: trail?.runId };
    const ms = Math.round(elapsedMs * 10) / 10;
    log.info({ ...ids, method, route, status, ms }, isAbandoned ? 'request abandoned' : 'request');
  }
}
