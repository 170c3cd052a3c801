import type { FastifyInstance, FastifyRequest } from 'fastify';
import { noteFailure, spanFrom, SpanKind, within, type Span } from '#platform';
import { ADMIN_PATH } from '../admin/admin-routes.ts';
import { BASE_PATH } from './endpoint.ts';
import { statusOf } from './request-log.ts';

const spans = new WeakMap<FastifyRequest, Span>();

/**
 * A span for each request of an operation, which goes on with the caller's trace if the request names one (`traceparent`).
 * Requests of what is no operation (health, metrics, documents, the console) have none. Of the address only the route is told.
 */
export function installRequestTraces(fastify: FastifyInstance): void {
  fastify.addHook('onRequest', (request, reply, done) => {
    const route = routeOf(request);
    if (route !== null) {
      const attributes = { 'http.request.method': request.method, 'http.route': route, 'url.scheme': request.protocol };
      const about = { kind: SpanKind.SERVER, attributes };
      const { traceparent, tracestate } = request.headers;
      const span = spanFrom({ headers: { traceparent, tracestate } }, `${request.method} ${route}`, about);
      spans.set(request, span);
      // Also of a caller that hangs up, which no hook of Fastify tells.
      reply.raw.once('close', () => endRequestSpan(request, statusOf(reply.raw)));
    }
    done();
  });

  // Last before the handler: reading a body loses what was under way before it.
  fastify.addHook('preHandler', (request, _reply, done) => {
    const span = spans.get(request);
    if (span === undefined) return done();
    within(span, done);
  });
}

/** The answer is on its way: of a stream, which may stay open for days, its head is. */
export function endRequestSpan(request: FastifyRequest, status: number): void {
  const span = spans.get(request);
  if (span === undefined) return;
  spans.delete(request);
  span.setAttribute('http.response.status_code', status);
  if (status >= 500) noteFailure(span, { code: status });
  span.end();
}

/** `/metrics` is checked as an operation of operators, and is none of those. */
function routeOf({ routeOptions: { config, url = '' } }: FastifyRequest): string | null {
  if (config.operation) return BASE_PATH + config.operation.path;
  return config.adminOperation && url.startsWith(ADMIN_PATH) ? ADMIN_PATH + config.adminOperation.path : null;
}
