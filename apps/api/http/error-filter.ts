import { Catch, HttpException, Inject, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { LOGGER, type Logger } from '#platform';
import { ownerOf } from '../bodies/body-intake.ts';
import { errorEnvelope, HttpError, notFound, toApiError } from './http-errors.ts';
import { drainRequest } from './drain-request.ts';

/** Sends the answer for each error of routes, hooks, body parsing and unknown paths. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  constructor(@Inject(LOGGER) private readonly logger: Logger) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    sendError(this.logger, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>(), unwrap(error));
  }
}

/** Returns the error inside that of Nest. Nest wraps Fastify's errors, and throws its own for an empty parameter. */
function unwrap(error: unknown): unknown {
  if (!(error instanceof HttpException)) return error;
  return error.cause ?? (error.getStatus() === 404 ? notFound('path') : error);
}

export function sendError(logger: Logger, request: FastifyRequest, reply: FastifyReply, error: unknown): void {
  const { id: requestId, raw } = request;
  const isRefused = error instanceof HttpError;
  const refusal = isRefused ? error : toApiError(error);
  // Refusals with 503 are not logged. A caller could cause thousands a second, and logging an error takes a millisecond.
  if (refusal.status !== 503) {
    if (refusal.status >= 500) logger.error({ requestId, err: error }, 'request failed');
  } else if (!isRefused) logger.warn({ requestId, err: error }, 'database or file storage unavailable');
  if (reply.sent) return;
  // Fastify would close the connection if it has not read the whole body, and a caller that still sends would lose the answer.
  reply.removeHeader('connection');
  if (!raw.complete) drainRequest(raw, raw.socket, ownerOf(request));
  const isExtended = (request.query as { extended?: unknown } | undefined)?.extended === 'true';
  void reply.code(refusal.status).headers(refusal.headers).send(errorEnvelope(refusal, isExtended));
}
