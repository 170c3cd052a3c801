import type { ErrorCause } from '../error-reasons.ts';

/** Error codes of the admin API with their HTTP status; a closed list, as that of the Agent Threads API is. */
export const ADMIN_ERRORS = {
  invalid_request: { status: 400, meaning: 'The path, query or body is not valid for this operation.' },
  invalid_json: { status: 400, meaning: 'The body is not JSON in UTF-8.' },
  unauthenticated: { status: 401, meaning: 'The token is missing, malformed, unknown, revoked or expired.' },
  forbidden: { status: 403, meaning: 'The token is valid but is not an operator token.' },
  not_found: { status: 404, meaning: 'The path, or a resource that the path or body names, does not exist.' },
  conflict: { status: 409, meaning: 'The state of the resource does not allow the change, or has changed meanwhile.' },
  rate_limited: { status: 429, meaning: 'The token has reached its rate limit; wait for `Retry-After`.' },
  internal_error: { status: 500, meaning: 'The service failed. With status 503, the database did not answer.' },
} as const satisfies Record<string, { status: number; meaning: string }>;

export type AdminErrorCode = keyof typeof ADMIN_ERRORS;

/**
 * Values of `Spool-Error-Reason` that only the admin API and the console return. They share the checks of requests, and thus the
 * other reasons, with the Agent Threads API. A refusal by an operation itself has no reason; its message states the cause.
 */
export const ADMIN_ERROR_REASONS = {
  operator_required: { code: 'forbidden', status: 403, meaning: 'The token is valid but is not an operator token.' },
  foreign_origin: {
    code: 'forbidden',
    status: 403,
    meaning: 'A change by a session cookie needs an `Origin` header that matches this service.',
  },
  too_many_sign_ins: {
    code: 'rate_limited',
    status: 429,
    meaning: 'Too many invalid tokens from this address.',
  },
  shutting_down: { code: 'internal_error', status: 503, meaning: 'The process is shutting down. Try again.' },
  queue_unavailable: { code: 'internal_error', status: 503, meaning: 'The queue does not answer.' },
} as const satisfies Record<string, ErrorCause>;
