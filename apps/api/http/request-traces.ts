import type { FastifyInstance, FastifyRequest } from 'fastify';
import { noteFailure, spanFrom, SpanKind, within, type Span } from '#platform';
import { ADMIN_PATH } from '../admin/admin-routes.ts';
import { BASE_PATH } from './endpoint.ts';
import { statusOf } from './request-log.ts';

const spans = new WeakMap<FastifyRequest, Span>();

/**
 * Records a span for each request of an operation. It continues the caller's trace if the request has a `traceparent`. Other
 * requests (health, metrics, documents, the console) have no span. Of the URL, the span has only the scheme and the route.
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
      // Ends the span also if the caller disconnects, which no hook of Fastify reports.
      reply.raw.once('close', () => endRequestSpan(request, statusOf(reply.raw)));
    }
    done();
  });

  // Runs last before the handler, because reading a body loses the context set before it.
  fastify.addHook('preHandler', (request, _reply, done) => {
    const span = spans.get(request);
    if (span === undefined) return done();
    within(span, done);
  });
}

/** Ends the span with the status of the answer. A stream ends it with its head, because it may stay open for days. */
export function endRequestSpan(request: FastifyRequest, status: number): void {
  const span = spans.get(request);
  if (span === undefined) return;
  spans.delete(request);
  span.setAttribute('http.response.status_code', status);
  if (status >= 500) noteFailure(span, { code: status });
  span.end();
}

/** Returns null if the route is no operation. `/metrics` is checked like one of the admin API, but is none. */
function routeOf({ routeOptions: { config, url = '' } }: FastifyRequest): string | null {
  if (config.operation) return BASE_PATH + config.operation.path;
  return config.adminOperation && url.startsWith(ADMIN_PATH) ? ADMIN_PATH + config.adminOperation.path : null;
}
