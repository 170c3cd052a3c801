import { Catch, HttpException, Inject, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { LOGGER, type Logger } from '#platform';
import { ownerOf } from '../bodies/body-intake.ts';
import { errorEnvelope, HttpError, notFound, toApiError } from './http-errors.ts';
import { letSenderFinish } from './let-sender-finish.ts';

/** Every error of the process's HTTP side ends here: of routes, hooks, body parsing and unknown paths. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  constructor(@Inject(LOGGER) private readonly logger: Logger) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    sendError(this.logger, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>(), unwrap(error));
  }
}

/** Nest wraps Fastify's errors, and throws its own for a parameter that is empty. */
function unwrap(error: unknown): unknown {
  if (!(error instanceof HttpException)) return error;
  return error.cause ?? (error.getStatus() === 404 ? notFound('path') : error);
}

export function sendError(logger: Logger, request: FastifyRequest, reply: FastifyReply, error: unknown): void {
  const { id: requestId, raw } = request;
  const isRefused = error instanceof HttpError;
  const refusal = isRefused ? error : toApiError(error);
  // A refusal is the caller's to see. A caller could send thousands a second, and writing an error takes a millisecond.
  if (refusal.status !== 503) {
    if (refusal.status >= 500) logger.error({ requestId, err: error }, 'request failed');
  } else if (!isRefused) logger.warn({ requestId, err: error }, 'database or file storage unavailable');
  if (reply.sent) return;
  // Fastify would hang up on a body that it has not read, and the caller, still sending, would not see the answer.
  reply.removeHeader('connection');
  if (!raw.complete) letSenderFinish(raw, raw.socket, ownerOf(request));
  void reply.code(refusal.status).headers(refusal.headers).send(errorEnvelope(refusal));
}
