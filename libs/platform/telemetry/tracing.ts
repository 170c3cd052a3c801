import {
  context,
  propagation,
  ROOT_CONTEXT,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Span,
  type SpanKind,
  type SpanOptions,
} from '@opentelemetry/api';

export { SpanKind, type Attributes, type Span } from '@opentelemetry/api';

let isOn = false;

/** Whether this process makes spans. Said once, by `startTracing`, before anything else is started. */
export const isTracing = (): boolean => isOn;

export function turnTracingOn(on: boolean): void {
  isOn = on;
}

/** What a span is told of when it begins. Never a text, an input, a secret or a token: ids, names and numbers. */
export interface SpanAbout {
  kind?: SpanKind;
  attributes?: Attributes;
}

/**
 * Does the work as a span of the one under way. Where there is none, or it has ended (a connection that is kept outlives the Run
 * that opened it), the work and nothing else.
 */
export function traced<T>(
  name: string,
  about: () => SpanAbout,
  work: (span: Span | undefined) => Promise<T>,
): Promise<T> {
  if (!isOn || trace.getActiveSpan()?.isRecording() !== true) return work(undefined);
  return inSpan(startSpan(name, about(), context.active()), work);
}

/** Where a trace goes on that has come from elsewhere. */
export interface TraceOrigin {
  /** The headers of W3C Trace Context, among others maybe; without them a trace begins. */
  headers: Record<string, unknown>;
  /** What else led to it, as a `traceparent`, if it is in another trace. */
  link?: string | null;
}

/** Does the work as a span that goes on with a trace from elsewhere, whatever is under way here. */
export function tracedFrom<T>(
  origin: TraceOrigin,
  name: string,
  about: SpanAbout,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  return inSpan(spanFrom(origin, name, about), work);
}

/** Such a span, to be ended by hand. */
export function spanFrom({ headers, link = null }: TraceOrigin, name: string, about: SpanAbout): Span {
  const from = propagation.extract(ROOT_CONTEXT, headers);
  const linked = link === null ? undefined : trace.getSpanContext(contextOf(link));
  const elsewhere = linked !== undefined && linked.traceId !== trace.getSpanContext(from)?.traceId;
  return startSpan(name, elsewhere ? { ...about, links: [{ context: linked }] } : about, from);
}

/** What the act begins belongs to the span. */
export function within<T>(span: Span, act: () => T): T {
  return context.with(trace.setSpan(context.active(), span), act);
}

/** The span under way as a W3C `traceparent`, null where there is none. */
export function traceParent(): string | null {
  return traceHeaders()['traceparent'] ?? null;
}

/** Of the span under way; null where there is none. */
export const traceId = (): string | null => trace.getActiveSpan()?.spanContext().traceId ?? null;

/** The span under way as the headers of W3C Trace Context, for whoever is to go on with the trace; none without one. */
export function traceHeaders(): Record<string, string> {
  const headers: Record<string, string> = {};
  if (isOn) propagation.inject(context.active(), headers);
  return headers;
}

/** The span is of something that went wrong. The message stays out: it may hold a text, an address or a secret. */
export function noteFailure(span: Span, error: unknown): void {
  span.setAttribute('error.type', errorType(error));
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** Of names that come from elsewhere, such as the id that a provider gives a call: whoever keeps spans pays for each character. */
const MAX_LENGTH = 128;

function startSpan(name: string, { attributes = {}, ...options }: SpanOptions, from: Context): Span {
  const bounded = Object.entries(attributes).map(([key, value]) => [
    key,
    typeof value === 'string' ? cut(value) : value,
  ]);
  const about = { ...options, attributes: Object.fromEntries(bounded) as Attributes };
  return trace.getTracer('spool').startSpan(cut(name), about, from);
}

/** A pair of surrogates stays whole: collectors refuse halves. */
const cut = (text: string): string => text.slice(0, MAX_LENGTH).replace(/\p{Surrogate}$/u, '');

const contextOf = (traceparent: string): Context => propagation.extract(ROOT_CONTEXT, { traceparent });

async function inSpan<T>(span: Span, work: (span: Span) => Promise<T>): Promise<T> {
  try {
    return await within(span, () => work(span));
  } catch (error) {
    noteFailure(span, error);
    throw error;
  } finally {
    span.end();
  }
}

/** Its code, or its cause's, as far as that is one; else its class. */
function errorType(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'unknown';
  const { code, cause, constructor } = error as { code?: unknown; cause?: { code?: unknown } };
  const codes = [code, cause?.code].filter((one) => typeof one === 'string' || typeof one === 'number').map(String);
  return codes.find((one) => /^[\w.-]{1,64}$/.test(one)) ?? (constructor.name || 'unknown');
}
