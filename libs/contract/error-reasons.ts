import type { ErrorCode } from './errors.ts';

/** The header of every error answer that names its cause. */
export const REASON_HEADER = 'Spool-Error-Reason';
/** The header with the id of the Thread that has the `externalRef` (`reference_taken`). */
export const THREAD_HEADER = 'Spool-Thread-Id';

/** One cause of error answers. */
export interface ErrorCause {
  code: ErrorCode;
  status: number;
  meaning: string;
}

/**
 * The closed catalogue of `Spool-Error-Reason`: each cause of an error answer, with its error code and HTTP status. A released
 * reason keeps its code, status and meaning. A test keeps docs/api/errors.md equal to it. A hidden resource has the same reason
 * as one that does not exist.
 */
export const ERROR_REASONS = {
  invalid_field: {
    code: 'invalid_request',
    status: 400,
    meaning: 'A field of the path, query, headers or body is missing, unknown or wrong; the message names it.',
  },
  invalid_url: { code: 'invalid_request', status: 400, meaning: 'The URL cannot be parsed.' },
  invalid_http: { code: 'invalid_request', status: 400, meaning: 'The request cannot be read as HTTP.' },
  host_missing: { code: 'invalid_request', status: 400, meaning: 'The request has no `Host` header.' },
  host_repeated: { code: 'invalid_request', status: 400, meaning: 'The request has more than one `Host` header.' },
  draft_not_found: {
    code: 'invalid_request',
    status: 400,
    meaning: 'A draft file is unknown, belongs to another caller or Agent, is already attached, or is older than 24 h.',
  },
  draft_repeated: { code: 'invalid_request', status: 400, meaning: 'One request names a draft file more than once.' },
  too_many_attachments: {
    code: 'invalid_request',
    status: 400,
    meaning: 'The Thread would have more attachments than `FILES_PER_THREAD` allows.',
  },
  invalid_upload: {
    code: 'invalid_request',
    status: 400,
    meaning: 'The body of the upload is not exactly one part, a file named `file`.',
  },
  incomplete_upload: {
    code: 'invalid_request',
    status: 400,
    meaning: 'The body of the upload was cut off, or is not multipart/form-data.',
  },
  attributed_user_unknown: {
    code: 'invalid_request',
    status: 400,
    meaning: '`attributed_user_id` names no member of the organization.',
  },
  method_not_allowed: {
    code: 'invalid_request',
    status: 405,
    meaning: 'The path does not accept this method; `Allow` lists the methods that it accepts.',
  },
  request_timeout: {
    code: 'invalid_request',
    status: 408,
    meaning: 'The request did not arrive in time, or arrived too slowly.',
  },
  body_too_large: { code: 'invalid_request', status: 413, meaning: 'The body is larger than allowed.' },
  file_too_large: {
    code: 'invalid_request',
    status: 413,
    meaning: 'The file is larger than the size limit for files.',
  },
  file_quota_full: {
    code: 'invalid_request',
    status: 413,
    meaning: 'The file would exceed the organization’s quota of files or bytes. Delete some files.',
  },
  unsupported_media_type: {
    code: 'invalid_request',
    status: 415,
    meaning: 'The operation does not accept this `Content-Type`.',
  },
  body_compressed: {
    code: 'invalid_request',
    status: 415,
    meaning: 'The body is compressed (`Content-Encoding`). Send it uncompressed.',
  },
  range_not_satisfiable: {
    code: 'invalid_request',
    status: 416,
    meaning: 'The `Range` is outside the file; `Content-Range` has its size.',
  },
  unsupported_expectation: {
    code: 'invalid_request',
    status: 417,
    meaning: '`Expect` asks for something other than `100-continue`.',
  },
  headers_too_large: { code: 'invalid_request', status: 431, meaning: 'The headers are too large.' },
  invalid_json: { code: 'invalid_json', status: 400, meaning: 'The body is not JSON in UTF-8.' },
  token_invalid: {
    code: 'unauthenticated',
    status: 401,
    meaning: 'The access token is missing, malformed, unknown, revoked or expired.',
  },
  token_expired: {
    code: 'unauthenticated',
    status: 401,
    meaning:
      'The browser token has expired. Get a new one and repeat the request, or resume the stream with `Last-Event-ID`.',
  },
  agent_forbidden: { code: 'forbidden', status: 403, meaning: 'The caller has no access to this Agent.' },
  attribution_forbidden: {
    code: 'forbidden',
    status: 403,
    meaning: 'The token is not allowed to create Threads for a person (`attributed_user_id`).',
  },
  verb_missing: {
    code: 'forbidden',
    status: 403,
    meaning: 'The browser token does not allow this; the message names the verb.',
  },
  user_forbidden: {
    code: 'forbidden',
    status: 403,
    meaning: 'The browser token is for another `userId`, or for one Thread only.',
  },
  origin_forbidden: {
    code: 'forbidden',
    status: 403,
    meaning: 'Pages of this `Origin` must not use the browser token.',
  },
  service_token_required: { code: 'forbidden', status: 403, meaning: 'Only service tokens create browser tokens.' },
  agent_not_found: { code: 'not_found', status: 404, meaning: 'The Agent does not exist.' },
  thread_not_found: {
    code: 'not_found',
    status: 404,
    meaning: 'The Thread does not exist, or the caller has no access to it.',
  },
  run_not_found: { code: 'not_found', status: 404, meaning: 'The Thread has no such Run.' },
  file_not_found: {
    code: 'not_found',
    status: 404,
    meaning: 'The file does not exist, the caller has no access to it, or it is a draft without content.',
  },
  content_lost: {
    code: 'not_found',
    status: 410,
    meaning: 'The file exists, but the file storage has lost its bytes. The operator can see it too.',
  },
  path_not_found: { code: 'not_found', status: 404, meaning: 'The path does not exist.' },
  agent_not_published: { code: 'agent_not_published', status: 409, meaning: 'The Agent is not published.' },
  api_access_off: { code: 'service_inactive', status: 409, meaning: 'The Agent’s API access is switched off.' },
  no_live_version: { code: 'service_inactive', status: 409, meaning: 'The Agent has no live version.' },
  browser_tokens_off: {
    code: 'service_inactive',
    status: 409,
    meaning: 'The installation has no `BROWSER_TOKEN_KEYS`. Only an operator can set them.',
  },
  agent_not_ready: {
    code: 'readiness_blocked',
    status: 409,
    meaning:
      'Something that the Agent needs is missing, such as a credential. Operators find it with `spool agent show`.',
  },
  key_in_progress: {
    code: 'idempotency_conflict',
    status: 409,
    meaning: 'The first request with this Idempotency-Key is not finished. Repeat it after `Retry-After`.',
  },
  key_reused: {
    code: 'idempotency_conflict',
    status: 409,
    meaning: 'This Idempotency-Key was used for another method, path or body. Use a new key.',
  },
  thread_busy: {
    code: 'idempotency_conflict',
    status: 409,
    meaning: 'A Run of the Thread is active. Wait for its end, or interrupt it.',
  },
  too_many_queued_runs: {
    code: 'idempotency_conflict',
    status: 409,
    meaning: '100 Runs already wait behind the current one (`whenBusy: enqueue`). Wait until some have ended.',
  },
  no_active_run: {
    code: 'idempotency_conflict',
    status: 409,
    meaning: 'The interrupt has no `runId`, and the Thread has no active Run.',
  },
  run_ended: {
    code: 'idempotency_conflict',
    status: 409,
    meaning: 'The Run ended while the interrupt was applied. Read the Run.',
  },
  run_not_retryable: {
    code: 'idempotency_conflict',
    status: 409,
    meaning: 'The Run is not the newest, has not ended, is completed, or failed with an error that is not retryable.',
  },
  request_not_pending: {
    code: 'idempotency_conflict',
    status: 409,
    meaning:
      'The confirmation request is unknown or no longer pending: its Run ended, it was withdrawn, or this batch decides it twice.',
  },
  request_decided: {
    code: 'idempotency_conflict',
    status: 409,
    meaning: 'The confirmation request is already decided. With `extended=true`, `error.decision` is the decision.',
  },
  thread_archived: {
    code: 'idempotency_conflict',
    status: 409,
    meaning: 'An archived Thread accepts no event, retry or new file. Unarchive it first.',
  },
  thread_terminated: {
    code: 'idempotency_conflict',
    status: 409,
    meaning: 'A TERMINATED Thread cannot be changed, only read and deleted.',
  },
  thread_contended: {
    code: 'idempotency_conflict',
    status: 409,
    meaning: 'Too many writers change the Thread. Repeat after `Retry-After`.',
  },
  files_contended: {
    code: 'idempotency_conflict',
    status: 409,
    meaning: 'Too many writers change the files. Repeat after `Retry-After`.',
  },
  upload_too_slow: {
    code: 'idempotency_conflict',
    status: 409,
    meaning: 'The upload took too long. Repeat after `Retry-After`.',
  },
  reference_taken: {
    code: 'idempotency_conflict',
    status: 409,
    meaning: 'Another Thread of the token, Agent and `userId` has this `externalRef`; `Spool-Thread-Id` names it.',
  },
  precondition_failed: {
    code: 'idempotency_conflict',
    status: 412,
    meaning:
      'The file’s ETag does not satisfy `If-Match` or `If-None-Match`. `ETag` is the current one; nothing was done.',
  },
  too_many_requests: {
    code: 'rate_limited',
    status: 429,
    meaning: 'The token, or the address of requests without a valid token, has used up its requests of this window.',
  },
  too_many_thread_streams: { code: 'rate_limited', status: 429, meaning: 'The Thread has too many open streams.' },
  too_many_streams: { code: 'rate_limited', status: 429, meaning: 'The token has too many open streams.' },
  too_many_organization_streams: {
    code: 'rate_limited',
    status: 429,
    meaning: 'The organization’s open streams have reached its share of this process.',
  },
  too_many_drafts: {
    code: 'rate_limited',
    status: 429,
    meaning: 'The caller has too many drafts. Delete or attach some.',
  },
  unexpected_failure: {
    code: 'internal_error',
    status: 500,
    meaning: 'Internal error. Report the X-Request-Id to the operator.',
  },
  database_unavailable: {
    code: 'internal_error',
    status: 503,
    meaning: 'The database does not answer. Nothing was done, or the outcome is unknown.',
  },
  too_many_process_streams: {
    code: 'internal_error',
    status: 503,
    meaning: 'The process has reached its limit of open streams. Repeat after `Retry-After`.',
  },
  too_many_body_bytes: {
    code: 'internal_error',
    status: 503,
    meaning:
      'Too many bytes of request bodies are in flight, in the process or for the organization. Repeat after `Retry-After`.',
  },
  storage_unavailable: {
    code: 'internal_error',
    status: 503,
    meaning: 'The file storage does not answer. Nothing was done, or the outcome is unknown.',
  },
} as const satisfies Record<string, ErrorCause>;

export type ErrorReason = keyof typeof ERROR_REASONS;

/** Returns the reasons of error answers that have this status and one of these codes. */
export function reasonsOf(status: number, codes: readonly ErrorCode[]): ErrorReason[] {
  const reasons = Object.keys(ERROR_REASONS) as ErrorReason[];
  return reasons.filter((reason) => {
    const { code, status: answered } = ERROR_REASONS[reason];
    return answered === status && codes.includes(code);
  });
}
