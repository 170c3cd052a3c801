import { ADMIN_ERRORS, ERRORS, type AdminErrorCode, type ErrorCode } from '#contract';
import type { AgentAccess } from '#access';
import type { Rejection, RejectionCode } from '#domain';
import { BlobStoreAway } from '#files';
import { isDatabaseAway } from '#platform';

/** Of the Agent Threads API and of the admin API. */
type AnyCode = ErrorCode | AdminErrorCode;
const ALL_ERRORS = { ...ADMIN_ERRORS, ...ERRORS };

/** A refusal with its place in the contract: thrown anywhere below a route, answered as the error envelope. */
export class ApiError<Code extends AnyCode = ErrorCode> extends Error {
  override name = 'ApiError';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    readonly code: Code,
    message: string,
    { status, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
  ) {
    super(message);
    this.status = status ?? ALL_ERRORS[code].status;
    this.headers = headers;
  }
}

const RETRY_SOON = { 'Retry-After': '1' };

export const unauthenticated = () =>
  new ApiError('unauthenticated', 'A valid access token is required.', { headers: { 'WWW-Authenticate': 'Bearer' } });

export const notOperator = () => new ApiError('forbidden', 'Only the token of an operator is accepted here.');

/** The same for what is not there and for what the caller may not see. */
export const notFound = (what: 'Agent' | 'Thread' | 'Run' | 'File' | 'path') =>
  new ApiError('not_found', what === 'path' ? 'There is no such path.' : `The ${what} was not found.`);

/** Nothing was done; the same request may succeed in a moment. */
export const busyNow = (message: string) => new ApiError('idempotency_conflict', message, { headers: RETRY_SOON });

/** Seconds until it is worth trying again. */
export const rateLimited = (message: string, seconds: number) =>
  new ApiError('rate_limited', message, { headers: { 'Retry-After': String(seconds) } });

export const wrongType = (wanted: string) =>
  new ApiError('invalid_request', `The body must be ${wanted}.`, { status: 415 });

export const tooLarge = (message: string) => new ApiError('invalid_request', message, { status: 413 });

/** What the policy says of an agent, as an error. */
export function agentError(access: Exclude<AgentAccess, 'ok'>): ApiError {
  switch (access) {
    case 'not_found':
      return notFound('Agent');
    case 'forbidden':
      return new ApiError(access, 'The caller may not use this Agent.');
    case 'agent_not_published':
      return new ApiError(access, 'The Agent is not published.');
    case 'service_inactive':
      return new ApiError(access, 'The Agent’s API access is inactive.');
  }
}

/** What each refusal of the domain is to callers of the API. Null: no caller can cause it. */
const REJECTED: Record<RejectionCode, ErrorCode | null> = {
  thread_missing: 'not_found',
  thread_exists: null,
  thread_archived: 'idempotency_conflict',
  thread_terminated: 'idempotency_conflict',
  thread_busy: 'idempotency_conflict',
  too_many_queued_runs: 'idempotency_conflict',
  no_active_run: 'idempotency_conflict',
  run_not_live: 'idempotency_conflict',
  run_not_retryable: 'idempotency_conflict',
  request_not_pending: 'idempotency_conflict',
  stale_dispatch: null,
  stale_attempt: null,
  illegal_transition: null,
};

export function rejectionError({ rejected, message }: Rejection): Error {
  const code = REJECTED[rejected];
  return code === null ? new Error(`The domain refused a caller by ${rejected}.`) : new ApiError(code, message);
}

/** Fastify's own errors that callers cause; every other 4xx of it is `invalid_request` with its status. */
const FASTIFY_ERRORS: Record<string, () => ApiError> = {
  FST_ERR_BAD_URL: () => new ApiError('invalid_request', 'The URL cannot be parsed.'),
  FST_ERR_CTP_EMPTY_JSON_BODY: () => new ApiError('invalid_json', 'The body is empty.'),
  FST_ERR_CTP_BODY_TOO_LARGE: () => new ApiError('invalid_request', 'The body is too large.', { status: 413 }),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () =>
    new ApiError('invalid_request', 'The body has a type that is not taken.', { status: 415 }),
};

/** Every error as a refusal: what is not known to be the caller's is ours, and says nothing of its cause. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error as ApiError;
  if (isDatabaseAway(error)) {
    const message = 'The service cannot reach its database. Try again.';
    return new ApiError('internal_error', message, { status: 503, headers: RETRY_SOON });
  }
  if (error instanceof BlobStoreAway) {
    const message = 'The service cannot reach its files. Try again.';
    return new ApiError('internal_error', message, { status: 503, headers: RETRY_SOON });
  }
  const { code, statusCode } = error instanceof Error ? (error as { code?: unknown; statusCode?: unknown }) : {};
  const known = typeof code === 'string' ? FASTIFY_ERRORS[code] : undefined;
  if (known !== undefined) return known();
  if (typeof code === 'string' && code.startsWith('FST_') && typeof statusCode === 'number' && statusCode < 500) {
    return new ApiError('invalid_request', 'The request cannot be read.', { status: statusCode });
  }
  return new ApiError('internal_error', 'Something failed on our side.');
}

/** The body of every answer that is not 2xx, and the data of `thread.error`. */
export function errorEnvelope<Code extends AnyCode>({ code, message }: ApiError<Code>) {
  return { error: { code, message } };
}
