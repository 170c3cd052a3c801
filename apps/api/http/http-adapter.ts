import { STATUS_CODES, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyHttpOptions } from 'fastify';
import type { ErrorReason } from '#contract';
import { BOUNDS } from '#domain';
import { newId, type Config, type Logger } from '#platform';
import { addCorsHeaders } from './cors.ts';
import { sendError } from './error-filter.ts';
import { ApiError, errorEnvelope } from './http-errors.ts';
import { KnownPaths } from './known-paths.ts';
import { drainRequest } from './drain-request.ts';
import { networkOf } from './limit-rate.ts';
import { RequestLog } from './request-log.ts';
import { metrics } from '../metrics.ts';

const MAX_PARAM_LENGTH = BOUNDS.requests.pathParameter.value;

/** How often Node checks for slow requests. Its default of 30 s would add that much to each timeout. */
const TIMEOUT_CHECK_MS = 1_000;

/** Creates the Fastify adapter of the API and of the standalone. request-checks.ts holds the checks of each request. */
export function createHttpAdapter(config: Config, logger: Logger): FastifyAdapter {
  const { BODY_LIMIT_BYTES, TRUSTED_PROXIES, HEADERS_TIMEOUT_MS, REQUEST_TIMEOUT_MS } = config;
  const options: FastifyHttpOptions<Server> = {
    loggerInstance: logger,
    logController: new RequestLog(),
    // A child logger for each request would cost more than its one line, which names the request.
    childLoggerFactory: (parent) => parent,
    genReqId: () => newId(),
    bodyLimit: BODY_LIMIT_BYTES,
    // Takes address, host and protocol from the headers of this many proxies.
    trustProxy: (_address, hop) => hop < TRUSTED_PROXIES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // A request on an open connection still gets its answer, with `Connection: close`.
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    frameworkErrors: (error, request, reply) => {
      addCorsHeaders(request, reply);
      sendError(logger, request, reply, error);
    },
    clientErrorHandler: (error, socket) => answerUnreadable(logger, error, socket),
    http: {
      // Node's own refusal has no body, so request-checks.ts refuses the request.
      requireHostHeader: false,
      headersTimeout: Math.min(HEADERS_TIMEOUT_MS, REQUEST_TIMEOUT_MS),
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    },
  };
  // Skips Nest's middleware layer, which would run on each request.
  const adapter = new FastifyAdapter({ ...options, skipMiddie: true });
  const fastify = adapter.getInstance();
  fastify.decorate('knownPaths', new KnownPaths(fastify, MAX_PARAM_LENGTH));
  fastify.server.on('checkExpectation', (_request, response: ServerResponse) => refuseExpectation(logger, response));
  return adapter;
}

/** Refuses any `Expect` but 100-continue. Such a request reaches no route, and Node's own refusal has no body. */
function refuseExpectation(logger: Logger, response: ServerResponse): void {
  const refusal = new ApiError('unsupported_expectation', 'Expect: must be 100-continue or absent');
  const body = JSON.stringify(errorEnvelope(refusal));
  const headers = { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': Buffer.byteLength(body) };
  const requestId = noteUnrouted(logger, refusal.status);
  const all = { ...headers, ...refusal.headers, 'X-Request-Id': requestId, Connection: 'close' };
  response.writeHead(refusal.status, all).end(body);
}

const UNREADABLE: Record<string, [ErrorReason, string]> = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'The headers are too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'The request did not arrive in time.'],
};

const INVALID_HTTP: [ErrorReason, string] = ['invalid_http', 'The request is not valid HTTP.'];

/** Sends the error envelope for a request that cannot be parsed as HTTP. Such a request reaches no route. */
function answerUnreadable(logger: Logger, { code }: { code?: string }, socket: Socket): void {
  // This connection already has its answer; the client may still be sending.
  if (socket.writableEnded) return;
  if (code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const refusal = new ApiError(...(UNREADABLE[code ?? ''] ?? INVALID_HTTP));
  const { status } = refusal;
  const body = JSON.stringify(errorEnvelope(refusal));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...Object.entries(refusal.headers).map(([name, value]) => `${name}: ${value}`),
    `X-Request-Id: ${noteUnrouted(logger, status)}`,
    'Connection: close',
  ];
  // Otherwise the parser reports an error for each chunk that follows.
  socket.removeAllListeners('data');
  drainRequest(socket, socket, `address ${networkOf(socket.remoteAddress ?? '')}`);
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/** Logs and counts a request that reached no route. Returns its id. */
function noteUnrouted(logger: Logger, status: number): string {
  const requestId = newId();
  metrics.httpRequests.inc({ method: 'OTHER', route: 'unknown', status });
  logger.info({ requestId, status }, 'request');
  return requestId;
}
