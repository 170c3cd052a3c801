import type { ServerResponse } from 'node:http';
import { LogController, type FastifyReply, type FastifyRequest } from 'fastify';
import { metrics } from '../metrics.ts';

/** The methods with their own metric label. The parser knows about thirty more, which no route has. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Returns the status of a finished request: 499, as in nginx, if the caller disconnected before the answer. */
export const statusOf = ({ headersSent, statusCode }: ServerResponse): number => (headersSent ? statusCode : 499);

/** The format of a caller's request id that is logged: short and plain, so that it cannot imitate other log text. */
const CALLER_REQUEST_ID = /^[\w.:-]{1,64}$/;

/**
 * Writes one line and counts one request when its answer is closed. Includes aborted requests, which Fastify's hooks do not
 * report. Logs only ids, never the token, the query of the URL or the text of a message.
 */
export class RequestLog extends LogController {
  override incomingRequest(request: FastifyRequest, reply: FastifyReply): void {
    const startedAt = performance.now();
    metrics.httpOpen.inc();
    // Lets operators find a reported answer in the log. Set here, so that every answer has it.
    reply.raw.setHeader('X-Request-Id', request.id);
    reply.raw.once('close', () => this.closed(request, reply, performance.now() - startedAt));
  }

  /** Writes nothing, because the line would contain the URL. */
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
    // The reader determines how long these last.
    const isFollowing = config.operation?.answer === 'event_stream' || config.adminOperation?.form === 'lines';
    if (!isFollowing) metrics.httpSeconds.observe(counted, elapsedMs / 1_000);
    const given = headers['x-request-id'];
    const callerRequestId = typeof given === 'string' && CALLER_REQUEST_ID.test(given) ? given : undefined;
    const ids = { requestId, callerRequestId, threadId: trail?.threadId, runId: trail?.runId };
    const ms = Math.round(elapsedMs * 10) / 10;
    log.info({ ...ids, method, route, status, ms }, isAbandoned ? 'request abandoned' : 'request');
  }
}
