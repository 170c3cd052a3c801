import cors, { type FastifyCorsOptions } from '@fastify/cors';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { LAST_EVENT_HEADER, REASON_HEADER, THREAD_HEADER } from '#contract';
import { BASE_PATH } from './endpoint.ts';

/**
 * Pages of every origin may read responses. This is safe because browsers add no credentials: a page needs a browser token, which
 * can list its origins.
 */
const ANY_ORIGIN = '*';

const EXPOSED = [
  ...['Retry-After', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'ETag', 'Content-Disposition'],
  ...[
    'Content-Length',
    'Content-Range',
    'Accept-Ranges',
    'Idempotency-Replayed',
    REASON_HEADER,
    LAST_EVENT_HEADER,
    THREAD_HEADER,
  ],
  ...['X-Request-Id', 'Allow'],
];

const CORS: FastifyCorsOptions = {
  origin: ANY_ORIGIN,
  methods: ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'],
  allowedHeaders: ['Authorization', 'Content-Type', 'Idempotency-Key', 'Last-Event-ID', 'If-None-Match', 'Range'],
  exposedHeaders: EXPOSED,
  // 2 h, the longest that Chromium accepts.
  maxAge: 7_200,
};
const OFF: FastifyCorsOptions = { origin: false };

/**
 * Only the Agent Threads API has CORS. Responses to requests without an Origin have no CORS headers, as in earlier releases. An
 * OPTIONS request without a method is no preflight, so it is refused like every wrong method.
 */
const hasCors = ({ headers, method, url }: FastifyRequest): boolean =>
  headers.origin !== undefined &&
  (method !== 'OPTIONS' || headers['access-control-request-method'] !== undefined) &&
  url.startsWith(`${BASE_PATH}/`);

/** Answers preflights, and adds CORS headers. Install hooks that refuse requests `after` it. */
export function installCors(fastify: FastifyInstance): FastifyInstance {
  return fastify.register(cors, { delegator: (request, done) => done(null, hasCors(request) ? CORS : OFF) }).after(() =>
    fastify.addHook('onRequest', (request, reply, done) => {
      // The plugin adds it to every response.
      if (!hasCors(request)) void reply.removeHeader('Vary');
      done();
    }),
  );
}

/** Adds the headers to the response for a URL that cannot be parsed. Such a request reaches no hook. */
export function addCorsHeaders(request: FastifyRequest, reply: FastifyReply): void {
  if (!hasCors(request)) return;
  void reply.headers({
    'Access-Control-Allow-Origin': ANY_ORIGIN,
    'Access-Control-Expose-Headers': EXPOSED.join(', '),
  });
}

/** Removes the headers from the response to a caller whose token must not be in a browser, so that no page can read it. */
export function removeCorsHeaders(reply: FastifyReply): void {
  for (const name of ['Access-Control-Allow-Origin', 'Access-Control-Expose-Headers']) void reply.removeHeader(name);
}
