import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyServerOptions } from 'fastify';
import { newId, type Config, type Logger } from '#platform';
import { sendError } from './error-filter.ts';
import { ApiError, errorEnvelope } from './http-errors.ts';
import { RequestLog } from './request-log.ts';

/** Longer than any path can be: a long id is refused like every other wrong one, after the token. */
const MAX_PARAM_LENGTH = 64 * 1024;

/** For a whole request to arrive, the largest body over a slow line included. */
const REQUEST_TIMEOUT_MS = 120_000;

/** Fastify as both the API and the standalone need it. What is checked on each request: request-checks.ts. */
export function createHttpAdapter({ BODY_LIMIT_BYTES }: Config, logger: Logger): FastifyAdapter {
  const options: FastifyServerOptions = {
    loggerInstance: logger,
    logController: new RequestLog(),
    // A child logger a request costs more than the one line that is written: it names the request itself.
    childLoggerFactory: (parent) => parent,
    genReqId: () => newId(),
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // What comes in on a connection that is open still gets its answer, and with it `Connection: close`.
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    frameworkErrors: (error, request, reply) => sendError(logger, request, reply, error),
    clientErrorHandler: answerUnreadable,
  };
  // Nest's middleware is not used; its layer would run on each request.
  return new FastifyAdapter({ ...options, skipMiddie: true });
}

const UNREADABLE_STATUS: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

/** What is not even HTTP reaches no route; it gets the envelope all the same. */
function answerUnreadable({ code }: { code?: string }, socket: Socket): void {
  if (code !== 'ECONNRESET' && socket.writable) {
    const status = UNREADABLE_STATUS[code ?? ''] ?? 400;
    const body = JSON.stringify(errorEnvelope(new ApiError('invalid_request', 'The request cannot be read.')));
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  }
  socket.destroy();
}
