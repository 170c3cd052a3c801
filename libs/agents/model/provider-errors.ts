import { APICallError } from '@ai-sdk/provider';
import { BOUNDS, causeMessage, causeWord, type FailureCause, type RunErrorCode } from '#domain';
import { BodyTooLarge, errorChain } from '#platform';
import { HarnessError } from '../harness.ts';
import { MessageTooComplex } from '../json-shape.ts';
import { baseUrlOf } from './continuation.ts';
import type { ModelChoice } from './model-settings.ts';
import { retryAfterMs } from './retry-after.ts';
import { REPORTED } from './reported-error.ts';
import { UnreadableAnswer } from './tolerant-answer.ts';
import { ProviderSilent, StreamCut } from './watched-stream.ts';

const MAX_READ = BOUNDS.answers.errorText.value;
const MAX_MESSAGE = 300;
const MAX_URL = 200;

/** What is known about a failed call. */
interface Failure {
  /** The HTTP status; null if there was no response, or the call failed after a response with status 200. */
  status: number | null;
  /** The provider's type, code and status if they are words, in lower case. */
  words: readonly string[];
  /** The type and the code as the provider wrote them, or the code of the network. */
  type?: string | undefined;
  code?: string | undefined;
  /** Empty if there is none. */
  message: string;
}

const CONTEXT_WORDS =
  /maximum context length|(prompt|input) is too long|context[ _]length|exceeds?\b.{0,40}\bcontext|context (window|limit|size)|exceeds the maximum number of tokens|range of input length/i;
const FILTER_WORDS = /content[ _](filter|management policy|policy)/i;
const BALANCE_WORDS = /credit balance|insufficient (balance|credits|quota|funds)/i;
const KEY_WORDS = /api key (is )?(not valid|invalid|expired)|(invalid|incorrect|expired) api key/i;
/** Statuses of refusals whose reason may be in the message only. */
const ABOUT_REQUEST: readonly (number | null)[] = [null, 400, 413, 422, 500];
/** The type for an answer that cannot be read. */
const UNREADABLE = 'unreadable';
/** Statuses of temporary refusals. */
const PASSING: readonly number[] = [408, 409, 425];

/** What the words of a failure mean: types and codes of providers, names of Python's exceptions and of gRPC's statuses. */
const MEANINGS: { [Code in RunErrorCode]?: readonly string[] } = {
  provider_quota_exhausted: ['insufficient_quota', 'billing_error', 'billing_hard_limit_reached', 'billing_not_active'],
  context_too_long: ['context_length_exceeded', 'context_window_exceeded_error', 'request_too_large'],
  content_filtered: ['content_filter', 'content_policy_violation', 'content_policy_violation_error'],
  provider_auth: [
    'authentication_error',
    'invalid_api_key',
    'permission_error',
    'permission_denied',
    'permission_denied_error',
    'access_denied_exception',
    'unauthenticated',
  ],
  provider_rate_limited: ['rate_limit_error', 'rate_limit_exceeded', 'resource_exhausted', 'throttling_exception'],
  provider_rejected: [
    'invalid_request_error',
    'invalid_argument',
    'invalid_parameter_error',
    'invalid_prompt',
    'bad_request_error',
    'unprocessable_entity_error',
    'validation_exception',
    'failed_precondition',
    'unsupported_parameter',
    'unsupported_value',
    'not_found',
    'not_found_error',
    'model_not_found',
    'resource_not_found_exception',
    'address_refused',
    UNREADABLE,
  ],
};

/** Some servers send the names of classes (`BadRequestError`). */
const letters = (word: string): string => word.replaceAll(/[^a-z]/g, '');

const means = ({ words }: Failure, code: RunErrorCode): boolean => {
  const known = MEANINGS[code]?.map(letters) ?? [];
  return words.some((word) => known.includes(letters(word)));
};

/** A limit of tokens a minute is no limit of the window. */
const isAboutRequest = (failure: Failure): boolean =>
  ABOUT_REQUEST.includes(failure.status) && !means(failure, 'provider_rate_limited');

/**
 * The first rule that matches decides, by its words (`MEANINGS`) or by its own condition. Without a match, the call failed late, and
 * the code is `provider_unavailable`.
 */
const RULES: readonly [RunErrorCode, (failure: Failure) => boolean][] = [
  ['provider_quota_exhausted', ({ status, message }) => status === 402 || BALANCE_WORDS.test(message)],
  [
    'context_too_long',
    (failure) => failure.status === 413 || (isAboutRequest(failure) && CONTEXT_WORDS.test(failure.message)),
  ],
  ['content_filtered', (failure) => isAboutRequest(failure) && FILTER_WORDS.test(failure.message)],
  [
    'provider_auth',
    ({ status, message }) => status === 401 || status === 403 || ((status ?? 400) === 400 && KEY_WORDS.test(message)),
  ],
  ['provider_rate_limited', ({ status }) => status === 429],
  ['provider_unavailable', ({ status }) => status !== null && (status >= 500 || PASSING.includes(status))],
  ['provider_rejected', ({ status }) => status !== null && status >= 300],
];

export interface FailureOf {
  /** The key of the call, which must not be logged; null if there is none. */
  apiKey: string | null;
  /** Milliseconds since 1970. */
  now: number;
  /** How long the call took, milliseconds. */
  waitedMs: number;
  model: ModelChoice;
  /** The headers of the response, if it began before the error. */
  headers?: Record<string, string>;
}

/**
 * Returns the HarnessError for what a provider's call threw. Its `cause` and `report` have status, type, code and message, the URL
 * if that may be wrong, and never the request, the answer or the key. A HarnessError is returned unchanged.
 */
export function providerError(error: unknown, { apiKey, now, waitedMs, model, headers = {} }: FailureOf): HarnessError {
  if (error instanceof HarnessError) return error;
  const tooLarge = tooLargeIn(error);
  if (tooLarge !== undefined) {
    const failure = { status: null, words: [], type: 'AnswerTooLarge', message: tooLarge.message };
    const report = reportOf(failure, { apiKey, model, waitedMs, requestId: requestIdOf(headers) });
    return new HarnessError('output_too_large', { cause: new Error(tooLarge.message), report });
  }
  const told = failureOf(error);
  // An error within a stream may have megabytes. The key is removed before the cut, so that no part of it remains.
  const failure = { ...told, message: withoutKey(told.message, apiKey).slice(0, MAX_READ) };
  const rule = RULES.find(([code, fits]) => fits(failure) || means(failure, code));
  const code = rule?.[0] ?? 'provider_unavailable';
  const asked =
    code === 'provider_rate_limited' || code === 'provider_unavailable'
      ? retryAfterMs(headersOf(error), { now, byLimits: code === 'provider_rate_limited' })
      : undefined;
  const text = describe(failure, apiKey);
  const isElsewhere = mayBeElsewhere(error, failure);
  const cause = new Error(isElsewhere ? withUrl(text, model, apiKey) : text);
  const message = isElsewhere ? cause.message : withoutKey(failure.message, apiKey);
  const requestId = requestIdOf({ ...headers, ...headersOf(error) });
  const report = reportOf({ ...failure, message }, { apiKey, model, waitedMs, requestId });
  return new HarnessError(code, { cause, report, ...(asked === undefined ? {} : { retryAfterMs: asked }) });
}

type Reported = Pick<FailureOf, 'apiKey' | 'model' | 'waitedMs'> & { requestId: string | undefined };

/** Returns what is stored about the failure, without the key. */
function reportOf(
  { status, type, code, message }: Failure,
  { apiKey, model, waitedMs, requestId }: Reported,
): FailureCause {
  const word = (text: string | undefined): string | undefined => text && causeWord(withoutKey(text, apiKey));
  return {
    source: 'provider',
    name: word(new URL(baseUrlOf(model)).host) ?? '',
    status: status ?? undefined,
    type: word(type),
    code: code === String(status) ? undefined : word(code),
    requestId: word(requestId),
    message: causeMessage(message) || undefined,
    waitedMs: Math.round(waitedMs),
  };
}

/** The headers by which providers name a request. */
const REQUEST_IDS = ['x-request-id', 'request-id', 'x-amzn-requestid', 'apim-request-id', 'cf-ray'];

const requestIdOf = (headers: Record<string, string>): string | undefined =>
  REQUEST_IDS.map((name) => headers[name]).find((id) => id !== undefined && id !== '');

/** Returns the error which says that an event of the answer is too large or has too many parts. */
function tooLargeIn(error: unknown): Error | undefined {
  return errorChain(error).find((cause) => cause instanceof BodyTooLarge || cause instanceof MessageTooComplex);
}

function failureOf(error: unknown): Failure {
  const chain = errorChain(error);
  // By its name, because this harness does not depend on the outbound guard.
  const refused = chain.find(({ name }) => name === 'AddressRefused');
  if (refused !== undefined)
    return { status: null, words: ['address_refused'], type: refused.name, message: refused.message };
  const reported = reportedIn(error);
  if (reported !== undefined) return toldBy(reported);
  const unreadable = chain.find((cause) => cause instanceof UnreadableAnswer);
  if (unreadable !== undefined)
    return { status: null, words: [UNREADABLE], type: unreadable.name, message: unreadable.message };
  if (APICallError.isInstance(error)) {
    const status = error.statusCode !== undefined && error.statusCode >= 300 ? error.statusCode : null;
    const told = toldBy(parsed(error.responseBody));
    const text = told.message || plainText(error.responseBody) || messageOf(chain);
    return { ...told, status, code: told.code ?? networkCodeOf(chain), message: text };
  }
  return { status: null, words: [], type: chain[0]?.name, code: networkCodeOf(chain), message: messageOf(chain) };
}

/** Returns a body that is neither JSON nor a page, as gateways send it. */
function plainText(body = ''): string {
  return /^\s*[<{["]/.test(body) ? '' : body.trim();
}

/** Returns the network code, such as `ECONNRESET`. */
function networkCodeOf(chain: readonly Error[]): string | undefined {
  return chain.map((error) => (error as NodeJS.ErrnoException).code).find((one) => typeof one === 'string');
}

/** Returns the network code, and the message if it contains nothing of the answer. */
function messageOf(chain: readonly Error[]): string {
  const code = networkCodeOf(chain);
  const [first] = chain;
  const isHarmless = first instanceof ProviderSilent || first instanceof StreamCut || APICallError.isInstance(first);
  const text = isHarmless ? first.message : (first?.name ?? 'unknown');
  return code === undefined ? text : `${text} (${code})`;
}

/** Returns the error that the provider sent in its answer. Anthropic's package wraps it if it is the first event. */
function reportedIn(error: unknown): unknown {
  const event = APICallError.isInstance(error) ? parsed(error.responseBody) : error;
  return isRecord(event) && event.type === REPORTED ? parsed(String(event.message)) : undefined;
}

/**
 * Reads `{error: {type, code, status, message}}`, the same without `error`, within another `error` or in a list (Gemini), with a text in
 * its place (Ollama), or `{detail}` (FastAPI). `status` is null where the body has no number of an error.
 */
function toldBy(body: unknown): Failure {
  const layers = layersOf(body);
  const first = <Value>(fields: readonly string[], known: (value: unknown) => Value | null): Value | null => {
    const values = layers.flatMap((layer) => fields.map((field) => known(layer[field])));
    return values.find((value) => value !== null) ?? null;
  };
  const message = first(['error', 'message', 'detail'], textOf) ?? '';
  const [, inMessage] = /^Error code: (\d{3})\b/.exec(message) ?? [];
  const [type, code, status] = ['type', 'code', 'status'].map((field) => first([field], wordOf));
  const words = [type, code, status].filter((word) => typeof word === 'string').map((word) => word.toLowerCase());
  const named = { type: type ?? undefined, code: code ?? undefined };
  return { status: first(STATUS_FIELDS, statusOf) ?? statusOf(inMessage), words, ...named, message };
}

const STATUS_FIELDS = ['code', 'status', 'statusCode', 'status_code', 'http_code', 'http_status'];

/** Returns the objects that tell of an error, the innermost first: it may be within two more `error`, each in a list. */
function layersOf(body: unknown): Record<string, unknown>[] {
  const layers: Record<string, unknown>[] = [];
  for (let next = body; layers.length < 3; next = layers[0]?.error) {
    const layer: unknown = Array.isArray(next) ? next[0] : next;
    if (!isRecord(layer)) break;
    layers.unshift(layer);
  }
  return layers;
}

const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

const statusOf = (value: unknown): number | null => {
  const status = typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value;
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599 ? status : null;
};

/** Cuts only what is too long to search for the key: the key is hidden before the cause is cut to its length. */
const wordOf = (value: unknown): string | null =>
  typeof value === 'number' || (typeof value === 'string' && value !== '') ? String(value).slice(0, MAX_READ) : null;

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

function mayBeElsewhere(error: unknown, { status, words }: Failure): boolean {
  const isMissing = status === 404 || status === 405;
  return words.includes(UNREADABLE) || (isMissing && APICallError.isInstance(error) && reportedIn(error) === undefined);
}

function withUrl(told: string, model: ModelChoice, apiKey: string | null): string {
  const path = model.provider === 'anthropic' ? '/messages' : '/chat/completions';
  // Without user name, password and query, which may be secret.
  const { origin, pathname } = new URL(`${baseUrlOf(model).replace(/\/$/, '')}${path}`);
  const url = withoutKey(`${origin}${pathname}`, apiKey).slice(0, MAX_URL);
  // The right server says with 404 that it does not have the model.
  if (/model/i.test(told)) return `POST ${url}: ${told}`;
  return `POST ${url}: ${told.replace(/\.$/, '')}. Check model.baseUrl: Spool adds ${path} to it, so it often ends with /v1.`;
}

function describe({ status, words, message }: Failure, apiKey: string | null): string {
  const told = words.filter((word) => word !== String(status));
  const text = [status === null ? '' : `HTTP ${status}`, ...told, message].filter((word) => word !== '').join(' ');
  // Before the text is cut, so that no part of the key is left.
  return withoutKey(text, apiKey).slice(0, MAX_MESSAGE) || 'unknown';
}

function withoutKey(text: string, apiKey: string | null): string {
  return apiKey === null || apiKey === '' ? text : text.replaceAll(apiKey, '[key]');
}
