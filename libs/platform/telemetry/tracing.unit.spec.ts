import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { isTracing, traced, tracedFrom, traceHeaders, traceParent, turnTracingOn } from './tracing.ts';

const exporter = new InMemorySpanExporter();
const ONE = `00-${'1'.repeat(32)}-${'a'.repeat(16)}-01`;
const TWO = `00-${'2'.repeat(32)}-${'b'.repeat(16)}-01`;
const UNSAMPLED = `00-${'3'.repeat(32)}-${'c'.repeat(16)}-00`;
const from = (traceparent: string, link?: string) => ({ headers: { traceparent }, ...(link ? { link } : {}) });
const spans = () =>
  exporter.getFinishedSpans().map((span) => {
    const { name, links, status, attributes, events } = span;
    const { traceId, spanId } = span.spanContext();
    return { name, links, status, attributes, events, traceId, spanId, parent: span.parentSpanContext?.spanId };
  });

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
});
beforeEach(() => {
  turnTracingOn(true);
  exporter.reset();
});
// Other spec files of this worker share these globals.
afterAll(() => {
  turnTracingOn(false);
  [context, propagation, trace].forEach((api) => api.disable());
});

it('creates no span, and does not call `about`, if tracing is off', async () => {
  turnTracingOn(false);
  const about = jest.fn(() => ({}));
  expect(await traced('a', about, (span) => Promise.resolve([span, traceParent(), traceHeaders()]))).toEqual([
    undefined,
    null,
    {},
  ]);
  expect([isTracing(), about.mock.calls.length, spans().length]).toEqual([false, 0, 0]);
});

it('creates a span only within a trace', async () => {
  await traced(
    'alone',
    () => ({}),
    () => Promise.resolve(),
  );
  expect(spans()).toEqual([]);
  await tracedFrom(from(ONE), 'outer', {}, () =>
    traced(
      'inner',
      () => ({}),
      () => Promise.resolve(),
    ),
  );
  const [inner, outer] = spans();
  expect(outer).toMatchObject({ name: 'outer', parent: 'a'.repeat(16), links: [] });
  expect(inner).toMatchObject({ name: 'inner', parent: outer!.spanId });
  expect(inner!.traceId).toBe('1'.repeat(32));
});

it('creates no span under a span that has ended', async () => {
  const nothing = () => Promise.resolve();
  const late = await tracedFrom(from(ONE), 'outer', {}, () =>
    Promise.resolve(context.bind(context.active(), () => traced('late', () => ({}), nothing))),
  );
  await late();
  expect(spans().map(({ name }) => name)).toEqual(['outer']);
});

it('continues the trace of its origin, and ignores the active span', async () => {
  const told = await tracedFrom(from(ONE), 'first', {}, () =>
    tracedFrom(from(TWO), 'second', {}, () => Promise.resolve(traceParent())),
  );
  expect(told).toMatch(new RegExp(`^00-${'2'.repeat(32)}-[0-9a-f]{16}-01$`));
});

it('links to another trace, but not to its own', async () => {
  await tracedFrom(from(ONE, TWO), 'linked', {}, () => Promise.resolve());
  await tracedFrom(from(ONE, ONE), 'own', {}, () => Promise.resolve());
  expect(spans().map(({ links }) => links.map((link) => link.context.traceId))).toEqual([['2'.repeat(32)], []]);
});

it('exports nothing of an unsampled trace, and passes on that it is unsampled', async () => {
  const told = await tracedFrom(from(UNSAMPLED), 'unseen', {}, () =>
    traced(
      'unseen too',
      () => ({}),
      () => Promise.resolve(traceParent()),
    ),
  );
  expect(told).toMatch(new RegExp(`^00-${'3'.repeat(32)}-[0-9a-f]{16}-00$`));
  expect(spans()).toEqual([]);
});

class Odd extends Error {}

it.each([
  [Object.assign(new Error('secret'), { code: 'ECONNRESET' }), 'ECONNRESET'],
  [new TypeError('secret', { cause: Object.assign(new Error('secret'), { code: 'AddressGone' }) }), 'AddressGone'],
  [Object.assign(new Odd('secret'), { code: 'a secret sentence' }), 'Odd'],
  ['secret', 'unknown'],
])('describes %p only by its code or its class', async (error, type) => {
  // oxlint-disable-next-line typescript/prefer-promise-reject-errors
  const failing = tracedFrom(from(ONE), 'fails', {}, () => Promise.reject(error));
  await expect(failing).rejects.toBe(error);
  const [span] = spans();
  expect(span).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': type }, events: [] });
  expect(JSON.stringify([span!.status, span!.attributes, span!.events])).not.toContain('secret');
});

it('limits the length of names and texts', async () => {
  const long = `${'x'.repeat(127)}😀 and more`;
  await tracedFrom(from(ONE), long, { attributes: { 'gen_ai.tool.call.id': long, count: 7 } }, () => Promise.resolve());
  const cut = 'x'.repeat(127);
  expect(spans()[0]).toMatchObject({ name: cut, attributes: { 'gen_ai.tool.call.id': cut, count: 7 } });
});
