import { get } from 'node:http';
import { trace } from '@opentelemetry/api';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import Fastify from 'fastify';
import { adminOperations, operations } from '#contract';
import { eventually } from '#testing';
import { installRequestTraces } from './request-traces.ts';

// Real: HTTP, the SDK.

const exporter = new InMemorySpanExporter();
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
beforeEach(() => exporter.reset());
// Other spec files of this worker may set a provider too.
afterAll(() => trace.disable());

test('only requests of operations have a span, named after the route', async () => {
  const app = Fastify();
  installRequestTraces(app);
  const configs = {
    '/api/v1/agents/:agentId': { operation: operations.getAgent },
    '/admin/v1/queue': { adminOperation: adminOperations.getQueue },
    // Checked as an operation of operators (observation.module.ts).
    '/metrics': { adminOperation: adminOperations.getQueue },
    '/console': {},
  };
  for (const [url, config] of Object.entries(configs)) app.get(url, { config }, (_, reply) => reply.send('ok'));
  const origin = await app.listen({ port: 0, host: '127.0.0.1' });
  for (const path of ['/api/v1/agents/1', '/admin/v1/queue', '/metrics', '/console', '/nowhere']) {
    await (await fetch(`${origin}${path}`)).text();
  }
  await app.close();
  const spans = exporter.getFinishedSpans();
  expect(spans.map(({ name }) => name)).toEqual(['GET /api/v1/agents/{agentId}', 'GET /admin/v1/queue']);
});

test('the span of a request whose caller disconnected before the answer has the status 499', async () => {
  const app = Fastify();
  installRequestTraces(app);
  let arrived = false;
  const config = { operation: operations.getAgent };
  app.get('/slow', { config }, () => {
    arrived = true;
    return new Promise(() => undefined);
  });
  const origin = await app.listen({ port: 0, host: '127.0.0.1' });
  // An aborted fetch of Node 20 connects again and sends nothing. `close` would wait for that connection.
  const caller = get(`${origin}/slow`).on('error', () => undefined);
  await eventually(() => arrived, { what: 'the request has arrived' });
  caller.destroy();
  const [span] = await eventually(() => ((spans) => spans.length > 0 && spans)(exporter.getFinishedSpans()), {
    what: 'its span has ended',
  });
  await app.close();
  expect(span!.attributes['http.response.status_code']).toBe(499);
});
