import { types } from 'node:util';
import { APICallError } from '@ai-sdk/provider';
import type { RunErrorCode } from '#domain';
import { BodyTooLarge } from '#platform';
import { HarnessError } from '../harness.ts';
import { MessageTooComplex } from '../json-shape.ts';
import { retryAfterMs } from './retry-after.ts';
import { REPORTED } from './reported-error.ts';
import { UnreadableAnswer } from './tolerant-answer.ts';
import { ProviderSilent, StreamCut } from './watched-stream.ts';

const MAX_MESSAGE = 300;

/** What is known about a failed call. */
interface Failure {
  /** The HTTP status; null if there was no response, or the call failed after a response with status 200. */
  status: number | null;
  /** The error type and code of either provider, in lower case; empty if there are none. */
  type: string;
  code: string;
  message: string;
}

/** Returns whether the type or code is one of the words. Some servers send names of classes (`BadRequestError`). */
const is = ({ type, code }: Failure, words: readonly string[]): boolean => {
  const bare = words.map(letters);
  return [type, code].some((word) => word !== '' && bare.includes(letters(word)));
};
const letters = (word: string): string => word.replaceAll(/[^a-z]/g, '');

const CONTEXT_WORDS =
  /maximum context length|prompt is too long|context[ _]length|exceeds?\b.{0,40}\bcontext|context (window|limit|size)/i;
const FILTER_WORDS = /content[ _](filter|management policy|policy)/i;
const BALANCE_WORDS = /credit balance|insufficient (balance|credits|quota|funds)/i;
/** Statuses of refusals whose reason may be in the message only. */
const ABOUT_REQUEST: readonly (number | null)[] = [null, 400, 413, 422, 500];
/** The type for an answer that cannot be read. */
const UNREADABLE = 'unreadable';
/** Statuses of temporary refusals. */
const PASSING: readonly number[] = [408, 409, 425];

/** The first rule that matches decides. Without a match, the call failed late, and the code is `provider_unavailable`. */
const RULES: readonly [RunErrorCode, (failure: Failure) => boolean][] = [
  [
    'provider_quota_exhausted',
    (failure) =>
      failure.status === 402 ||
      is(failure, ['insufficient_quota', 'billing_error', 'billing_hard_limit_reached', 'billing_not_active']) ||
      BALANCE_WORDS.test(failure.message),
  ],
  [
    'context_too_long',
    (failure) =>
      failure.status === 413 ||
      is(failure, ['context_length_exceeded', 'request_too_large']) ||
      (ABOUT_REQUEST.includes(failure.status) && CONTEXT_WORDS.test(failure.message)),
  ],
  [
    'content_filtered',
    (failure) =>
      is(failure, ['content_filter', 'content_policy_violation']) ||
      (ABOUT_REQUEST.includes(failure.status) && FILTER_WORDS.test(failure.message)),
  ],
  [
    'provider_auth',
    (failure) =>
      failure.status === 401 ||
      failure.status === 403 ||
      is(failure, ['authentication_error', 'permission_error', 'invalid_api_key']),
  ],
  [
    'provider_rate_limited',
    (failure) => failure.status === 429 || is(failure, ['rate_limit_error', 'rate_limit_exceeded']),
  ],
  ['provider_unavailable', ({ status }) => status !== null && (status >= 500 || PASSING.includes(status))],
  [
    'provider_rejected',
    (failure) =>
      (failure.status !== null && failure.status >= 300) ||
      is(failure, ['invalid_request_error', 'bad_request_error', 'not_found_error', 'address_refused', UNREADABLE]),
  ],
];

export interface FailureOf {
  /** The key of the call, which must not be logged; null if there is none. */
  apiKey: string | null;
  /** Milliseconds since 1970. */
  now: number;
}

/**
 * Returns the HarnessError for whatever a provider's call threw. Its `cause` has status, type, code and message, and never the
 * request, the answer or the key. A HarnessError is returned unchanged.
 */
export function providerError(error: unknown, { apiKey, now }: FailureOf): HarnessError {
  if (error instanceof HarnessError) return error;
  const tooLarge = tooLargeIn(error);
  if (tooLarge !== undefined) return new HarnessError('output_too_large', { cause: new Error(tooLarge.message) });
  const failure = failureOf(error);
  const code = RULES.find(([, fits]) => fits(failure))?.[0] ?? 'provider_unavailable';
  const asked =
    code === 'provider_rate_limited' || code === 'provider_unavailable'
      ? retryAfterMs(headersOf(error), { now, byLimits: code === 'provider_rate_limited' })
      : undefined;
  const cause = new Error(describe(failure, apiKey));
  return new HarnessError(code, { cause, ...(asked === undefined ? {} : { retryAfterMs: asked }) });
}

/** Returns the error which says that an event of the answer is too large or has too many parts. */
function tooLargeIn(error: unknown): Error | undefined {
  return causesOf(error).find((cause) => cause instanceof BodyTooLarge || cause instanceof MessageTooComplex);
}

function failureOf(error: unknown): Failure {
  const chain = causesOf(error);
  // By its name, because this harness does not depend on the outbound guard.
  const refused = chain.find(({ name }) => name === 'AddressRefused');
  if (refused !== undefined) return { status: null, type: 'address_refused', code: '', message: refused.message };
  const reported = reportedIn(error);
  if (reported !== undefined) return { ...toldBy(reported), status: statusIn(reported) };
  const unreadable = chain.find((cause) => cause instanceof UnreadableAnswer);
  if (unreadable !== undefined) return { status: null, type: UNREADABLE, code: '', message: unreadable.message };
  if (APICallError.isInstance(error)) {
    const status = error.statusCode !== undefined && error.statusCode >= 300 ? error.statusCode : null;
    const told = toldBy(parsed(error.responseBody));
    return { ...told, status, message: told.message || messageOf(chain) };
  }
  return { status: null, type: '', code: '', message: messageOf(chain) };
}

/** Returns the network code (`ECONNRESET`), and the message if it contains nothing of the answer. */
function messageOf(chain: readonly Error[]): string {
  const code = chain.map((error) => (error as NodeJS.ErrnoException).code).find((one) => typeof one === 'string');
  const [first] = chain;
  const isHarmless = first instanceof ProviderSilent || first instanceof StreamCut || APICallError.isInstance(first);
  const text = isHarmless ? first.message : (first?.name ?? 'unknown');
  return code === undefined ? text : `${text} (${code})`;
}

function causesOf(error: unknown): Error[] {
  const chain: Error[] = [];
  // Not `instanceof`, because under Jest the errors of Node's fetch have another class Error.
  for (let next = error; types.isNativeError(next) && chain.length < 10; next = next.cause) chain.push(next);
  return chain;
}

/** Returns the error that the provider sent in its answer. Anthropic's package wraps it if it is the first event. */
function reportedIn(error: unknown): unknown {
  const event = APICallError.isInstance(error) ? parsed(error.responseBody) : error;
  return isRecord(event) && event.type === REPORTED ? parsed(String(event.message)) : undefined;
}

interface Told {
  type: string;
  code: string;
  message: string;
}

/** Reads `{error: {type, code, message}}`, the same without `error`, `{error: text}` (Ollama) or `{detail}` (FastAPI). */
function toldBy(body: unknown): Told {
  const outer = isRecord(body) ? body : {};
  const inner = isRecord(outer.error) ? outer.error : outer;
  const message = typeof outer.error === 'string' ? outer.error : (inner.message ?? inner.detail);
  return {
    type: wordOf(inner.type),
    code: wordOf(inner.code),
    message: typeof message === 'string' ? message : '',
  };
}

/** Returns the HTTP status that an error in an answer names by its code, null if it names none. */
function statusIn(body: unknown): number | null {
  const outer = isRecord(body) ? body : {};
  const inner = isRecord(outer.error) ? outer.error : {};
  for (const field of ['code', 'status', 'statusCode', 'status_code', 'http_code']) {
    for (const value of [inner[field], outer[field]]) {
      const status = typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value;
      if (typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599) return status;
    }
  }
  return null;
}

function wordOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value).toLowerCase().slice(0, 100) : '';
}

function parsed(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return null;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function headersOf(error: unknown): Record<string, string> {
  return APICallError.isInstance(error) ? (error.responseHeaders ?? {}) : {};
}

function describe({ status, type, code, message }: Failure, apiKey: string | null): string {
  const words = [status === null ? '' : `HTTP ${status}`, type, code, message].filter((word) => word !== '').join(' ');
  // Before the text is cut, so that no part of the key is left.
  const safe = apiKey === null || apiKey === '' ? words : words.replaceAll(apiKey, '[key]');
  return safe.slice(0, MAX_MESSAGE) || 'unknown';
}
