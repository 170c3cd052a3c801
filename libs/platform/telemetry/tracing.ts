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

/** Returns whether this process creates spans. `startTracing` sets it once, before anything else is started. */
export const isTracing = (): boolean => isOn;

export function turnTracingOn(on: boolean): void {
  isOn = on;
}

/** The data of a new span: ids, names and numbers, never a text, an input, a secret or a token. */
export interface SpanAbout {
  kind?: SpanKind;
  attributes?: Attributes;
}

/**
 * Does the work in a child of the active span. Creates no span if there is no active span or it has ended: a kept connection
 * outlives the Run that opened it.
 */
export function traced<T>(
  name: string,
  about: () => SpanAbout,
  work: (span: Span | undefined) => Promise<T>,
): Promise<T> {
  if (!isOn || trace.getActiveSpan()?.isRecording() !== true) return work(undefined);
  return inSpan(startSpan(name, about(), context.active()), work);
}

/** The trace that a span continues, from another process or an earlier request. */
export interface TraceOrigin {
  /** Headers, possibly with those of W3C Trace Context. Without these, a new trace begins. */
  headers: Record<string, unknown>;
  /** Another cause, as a `traceparent`. Linked if it is in another trace. */
  link?: string | null;
}

/** Does the work in a span that continues the trace of `origin`. Ignores the active span. */
export function tracedFrom<T>(
  origin: TraceOrigin,
  name: string,
  about: SpanAbout,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  return inSpan(spanFrom(origin, name, about), work);
}

/** Starts a span that continues the trace of the origin. The caller ends it. */
export function spanFrom({ headers, link = null }: TraceOrigin, name: string, about: SpanAbout): Span {
  const from = propagation.extract(ROOT_CONTEXT, headers);
  const linked = link === null ? undefined : trace.getSpanContext(contextOf(link));
  const elsewhere = linked !== undefined && linked.traceId !== trace.getSpanContext(from)?.traceId;
  return startSpan(name, elsewhere ? { ...about, links: [{ context: linked }] } : about, from);
}

/** Calls `act` with the span as the active one. */
export function within<T>(span: Span, act: () => T): T {
  return context.with(trace.setSpan(context.active(), span), act);
}

/** Returns the active span as a W3C `traceparent`; null if there is none. */
export function traceParent(): string | null {
  return traceHeaders()['traceparent'] ?? null;
}

/** Returns the trace id of the active span; null if there is none. */
export const traceId = (): string | null => trace.getActiveSpan()?.spanContext().traceId ?? null;

/** Returns the active span as headers of W3C Trace Context, to continue the trace elsewhere; no headers without a span. */
export function traceHeaders(): Record<string, string> {
  const headers: Record<string, string> = {};
  if (isOn) propagation.inject(context.active(), headers);
  return headers;
}

/** Marks the span as failed. Omits the message, which may contain a text, an address or a secret. */
export function noteFailure(span: Span, error: unknown): void {
  span.setAttribute('error.type', errorType(error));
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** The maximum length of names and texts, because stored characters cost. Some come from others, such as the ids of providers. */
const MAX_LENGTH = 128;

function startSpan(name: string, { attributes = {}, ...options }: SpanOptions, from: Context): Span {
  const bounded = Object.entries(attributes).map(([key, value]) => [
    key,
    typeof value === 'string' ? cut(value) : value,
  ]);
  const about = { ...options, attributes: Object.fromEntries(bounded) as Attributes };
  return trace.getTracer('spool').startSpan(cut(name), about, from);
}

/** Cuts a text. Never splits a surrogate pair, because collectors reject halves. */
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

/** Returns the code of the error or of its cause, if it looks like a code; otherwise the class of the error. */
function errorType(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'unknown';
  const { code, cause, constructor } = error as { code?: unknown; cause?: { code?: unknown } };
  const codes = [code, cause?.code].filter((one) => typeof one === 'string' || typeof one === 'number').map(String);
  return codes.find((one) => /^[\w.-]{1,64}$/.test(one)) ?? (constructor.name || 'unknown');
}
