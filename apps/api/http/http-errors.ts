import {
  ADMIN_ERROR_REASONS,
  ERROR_REASONS,
  REASON_HEADER,
  THREAD_HEADER,
  type AdminErrorCode,
  type ErrorCode,
  type ErrorReason,
} from '#contract';
import type { AgentAccess, PolicyAgent } from '#access';
import type { ReadinessIssue } from '#agents';
import type { PermissionDecision, Rejection, RejectionCode } from '#domain';
import { BlobStoreUnavailable } from '#files';
import { isDatabaseUnavailable } from '#platform';
import { ThreadRefused, type Refusal } from '#threads';

/** The error codes of the Agent Threads API and of the admin API. */
type AnyCode = ErrorCode | AdminErrorCode;

const ALL_REASONS = { ...ADMIN_ERROR_REASONS, ...ERROR_REASONS };
type AnyReason = keyof typeof ALL_REASONS;

/** A refused request. If a route throws it, the answer is the error envelope with this status and these headers. */
export class HttpError<Code extends AnyCode = AnyCode> extends Error {
  override name = 'HttpError';

  constructor(
    readonly code: Code,
    readonly status: number,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
    /** Fields of the error in answers to requests with `extended=true`. */
    readonly extended: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

/** A refusal for a reason of the catalogue, which determines its code and status. */
export class ApiError extends HttpError<ErrorCode> {
  override name = 'ApiError';

  constructor(
    readonly reason: AnyReason,
    message: string,
    { headers = {}, extended = {} }: { headers?: Record<string, string>; extended?: Record<string, string> } = {},
  ) {
    const { code, status } = ALL_REASONS[reason];
    super(code, status, message, { [REASON_HEADER]: reason, ...headers }, extended);
  }
}

export const RETRY_SOON = { 'Retry-After': '1' };

export const unauthenticated = () =>
  new ApiError('token_invalid', 'A valid access token is required.', { headers: { 'WWW-Authenticate': 'Bearer' } });

export const tokenExpired = () =>
  new ApiError('token_expired', 'The browser token has expired.', {
    headers: { 'WWW-Authenticate': 'Bearer' },
    // The error that ends a stream has no header.
    extended: { reason: 'token_expired' },
  });

export const notOperator = () => new ApiError('operator_required', 'This path requires the token of an operator.');

const NOT_FOUND = {
  Agent: 'agent_not_found',
  Thread: 'thread_not_found',
  Run: 'run_not_found',
  File: 'file_not_found',
  path: 'path_not_found',
} as const;

/** The refusal for a missing object, and the same for an object that the caller has no access to. */
export const notFound = (what: keyof typeof NOT_FOUND) =>
  new ApiError(NOT_FOUND[what], what === 'path' ? 'There is no such path.' : `The ${what} was not found.`);

/** The refusal for a path that exists, but not with this method. */
export const methodNotAllowed = (allowed: readonly string[]) =>
  new ApiError('method_not_allowed', `Method not allowed; this path accepts ${allowed.join(', ')}.`, {
    headers: { Allow: allowed.join(', ') },
  });

/** The refusal for a request that changed nothing and may soon succeed. */
export const busyNow = (
  reason: 'key_in_progress' | 'thread_contended' | 'files_contended' | 'upload_too_slow',
  message: string,
) => new ApiError(reason, message, { headers: RETRY_SOON });

/** The refusal of a body beyond the process's budget, or beyond the share of the caller's organization. */
export const bodiesFull = () =>
  new ApiError('too_many_body_bytes', 'Too many request bodies are in flight; wait for Retry-After.', {
    headers: RETRY_SOON,
  });

/** The refusal if another request with the same key is in progress or has just been committed. */
export const keyInProgress = () => busyNow('key_in_progress', 'A request with this Idempotency-Key is in progress.');

/** The refusal beyond a limit. `seconds` is the time after which a retry can succeed. */
export const rateLimited = (
  reason: Extract<
    AnyReason,
    `too_many_${'requests' | 'thread_streams' | 'streams' | 'organization_streams' | 'drafts' | 'sign_ins'}`
  >,
  message: string,
  seconds: number,
) => new ApiError(reason, message, { headers: { 'Retry-After': String(seconds) } });

export const wrongType = (wanted: string) =>
  new ApiError('unsupported_media_type', `Unsupported Content-Type; send ${wanted}.`);

/** The refusal of a compressed body (RFC 9110, section 15.5.16). */
export const wrongEncoding = () =>
  new ApiError('body_compressed', 'The body is compressed (Content-Encoding); send it uncompressed.', {
    headers: { 'Accept-Encoding': 'identity' },
  });

/** The refusal for a file that does not satisfy the header; `etag` is its current one. */
export const preconditionFailed = (header: 'If-Match' | 'If-None-Match', etag: string) =>
  new ApiError('precondition_failed', `${header} failed: the file’s ETag is ${etag}.`, {
    headers: { ETag: etag },
  });

export const contentLost = () =>
  new ApiError(
    'content_lost',
    'The file storage has lost the bytes of this file. Upload it again, or ask the operator.',
  );

/** The refusal of a file beyond the quota of the organization. */
export const fileQuotaFull = () =>
  new ApiError(
    'file_quota_full',
    'The organization’s file quota is full; delete files, or ask an operator for a higher quota.',
  );

export const fileTooLarge = (message: string) => new ApiError('file_too_large', message);

/** Returns the error for an agent that the policy does not let the caller use. */
export function agentError(
  access: Exclude<AgentAccess, 'ok'>,
  { apiEnabled }: Pick<PolicyAgent, 'apiEnabled'>,
): ApiError {
  switch (access) {
    case 'not_found':
      return notFound('Agent');
    case 'forbidden':
      return new ApiError('agent_forbidden', 'The caller has no access to this Agent.');
    case 'agent_not_published':
      return new ApiError('agent_not_published', 'The Agent is not published.');
    case 'service_inactive':
      return apiEnabled
        ? new ApiError('no_live_version', 'The Agent has no live version.')
        : new ApiError('api_access_off', 'The Agent’s API access is switched off.');
  }
}

/** The error reason of each refusal of the domain. Null: no caller can cause it. */
const REJECTED: Record<RejectionCode, ErrorReason | null> = {
  thread_missing: 'thread_not_found',
  thread_exists: null,
  thread_archived: 'thread_archived',
  thread_terminated: 'thread_terminated',
  thread_busy: 'thread_busy',
  too_many_queued_runs: 'too_many_queued_runs',
  no_active_run: 'no_active_run',
  run_not_live: 'run_ended',
  run_not_retryable: 'run_not_retryable',
  request_not_pending: 'request_not_pending',
  stale_dispatch: null,
  stale_attempt: null,
  illegal_transition: null,
};

function rejectionError({ rejected, message }: Rejection, decision?: PermissionDecision): Error {
  if (decision !== undefined) {
    return new ApiError('request_decided', 'The confirmation request is already decided.', { extended: { decision } });
  }
  const reason = REJECTED[rejected];
  return reason === null
    ? new Error(`The domain refused a caller with the internal rejection ${rejected}.`)
    : new ApiError(reason, message);
}

/** Returns the error for a refused use case. */
export function refusalError(refusal: Refusal): Error {
  switch (refusal.reason) {
    case 'rejected':
      return rejectionError(refusal.rejection, refusal.decision);
    case 'agent_not_ready':
      return new ApiError('agent_not_ready', `The Agent cannot run now: ${messagesOf(refusal.issues)}.`);
    case 'no_live_version':
      return new ApiError('no_live_version', 'The Agent has no live version.');
    case 'draft_repeated':
      return new ApiError('draft_repeated', `Draft file ${refusal.fileId} is listed more than once.`);
    case 'draft_not_found':
      return new ApiError('draft_not_found', `There is no draft file ${refusal.fileId}.`);
    case 'too_many_attachments':
      return new ApiError('too_many_attachments', `The limit of attachments per Thread is ${refusal.max}.`);
    case 'reference_taken': {
      const { threadId } = refusal;
      const more = { headers: { [THREAD_HEADER]: threadId }, extended: { threadId } };
      return new ApiError('reference_taken', `The externalRef is already used by Thread ${threadId}.`, more);
    }
    case 'quota_full':
      return fileQuotaFull();
    case 'run_not_found':
      return notFound('Run');
    case 'file_changed':
      return notFound('File');
    case 'key_taken':
      return keyInProgress();
    case 'thread_contended':
      return busyNow('thread_contended', 'Too many writers change the Thread; repeat the request.');
    case 'files_contended':
      return busyNow('files_contended', 'Too many writers change the files; repeat the request.');
  }
}

/** Joins the messages, each once. Omits the details, which are for operators. */
function messagesOf(issues: readonly ReadinessIssue[]): string {
  return [...new Set(issues.map(({ message }) => message))].join('; ');
}

/** Returns whether the error is a refusal, which changed nothing. */
export const isRefusal = (error: unknown): boolean => error instanceof ApiError || error instanceof ThreadRefused;

/** Fastify's own errors that callers cause; all its other 4xx errors are `invalid_http`. */
const FASTIFY_ERRORS: Record<string, () => ApiError> = {
  FST_ERR_BAD_URL: () => new ApiError('invalid_url', 'The URL cannot be parsed.'),
  FST_ERR_CTP_EMPTY_JSON_BODY: () => new ApiError('invalid_json', 'The body is empty; send JSON.'),
  FST_ERR_CTP_BODY_TOO_LARGE: () => new ApiError('body_too_large', 'The body is too large.'),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => new ApiError('unsupported_media_type', 'Unsupported Content-Type.'),
};

/** Returns each error as a refusal. An unknown error becomes a 500 without its cause. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof ThreadRefused) return toApiError(refusalError(error.refusal));
  if (isDatabaseUnavailable(error)) {
    const message = 'The service cannot reach its database. Try again.';
    return new ApiError('database_unavailable', message, { headers: RETRY_SOON });
  }
  if (error instanceof BlobStoreUnavailable) {
    const message = 'The service cannot reach its file storage. Try again.';
    return new ApiError('storage_unavailable', message, { headers: RETRY_SOON });
  }
  const { code, statusCode } = error instanceof Error ? (error as { code?: unknown; statusCode?: unknown }) : {};
  const known = typeof code === 'string' ? FASTIFY_ERRORS[code] : undefined;
  if (known !== undefined) return known();
  if (typeof code === 'string' && code.startsWith('FST_') && typeof statusCode === 'number' && statusCode < 500) {
    return new ApiError('invalid_http', 'The request is not valid HTTP.');
  }
  return new ApiError('unexpected_failure', 'Internal error. Report the X-Request-Id to the operator.');
}

/** The body of every answer that is not 2xx, and the data of `thread.error`. */
export function errorEnvelope<Code extends AnyCode>({ code, message, extended }: HttpError<Code>, isExtended = false) {
  return { error: { code, message, ...(isExtended && extended) } };
}
