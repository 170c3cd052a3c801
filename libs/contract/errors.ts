/**
 * The closed catalogue of error codes (docs/spec/agent-threads-api.md#errors), with the HTTP status of each
 * (docs/spec/decisions.md#errors). docs/api/errors.md holds the same for readers, kept equal by a test.
 * `invalid_request` also comes as 413 (body too large) and 415 (wrong content type), `not_found` as 410 (lost
 * content), `internal_error` also as 503 (database unavailable).
 */
export const ERRORS = {
  invalid_request: {
    status: 400,
    meaning: 'The path, query, headers or body of the request are not valid for this operation.',
    remedy: 'Correct what the message names. The same request will be rejected again.',
  },
  invalid_json: {
    status: 400,
    meaning: 'The body is not JSON in UTF-8.',
    remedy: 'Send one JSON document in UTF-8 with `Content-Type: application/json`.',
  },
  unauthenticated: {
    status: 401,
    meaning: 'The access token is missing, malformed, unknown, revoked or expired.',
    remedy: 'Send `Authorization: Bearer <ACCESS_TOKEN>` with a valid token.',
  },
  forbidden: {
    status: 403,
    meaning: 'The caller has no access to this Agent.',
    remedy: 'Ask an operator to add the person to the organization or the Agent, or the Agent to the service token.',
  },
  not_found: {
    status: 404,
    meaning: 'The resource or path does not exist, or the caller has no access to it.',
    remedy: 'Check the id, the token and the path.',
  },
  agent_not_published: {
    status: 409,
    meaning: 'The Agent is not published.',
    remedy: 'Ask the Agent’s owner to publish it.',
  },
  service_inactive: {
    status: 409,
    meaning: 'The Agent is published, but its API access is switched off or it has no live version.',
    remedy: 'Ask the Agent’s owner to switch API access on, or to make a version live.',
  },
  readiness_blocked: {
    status: 409,
    meaning: 'The Agent cannot run now, because something that it needs is missing. No Run was created.',
    remedy: 'Ask the Agent’s owner to provide what the message names, then repeat the request.',
  },
  idempotency_conflict: {
    status: 409,
    meaning:
      'The state of the Thread rejects the action, or the Idempotency-Key belongs to another request or to one in progress.',
    remedy:
      'Read `Spool-Error-Reason`. If `Retry-After` is sent, wait that long and repeat; otherwise change the Thread’s state or use a new key.',
  },
  rate_limited: {
    status: 429,
    meaning: 'The token has reached its rate limit.',
    remedy: 'Wait for the number of seconds in `Retry-After`.',
  },
  internal_error: {
    status: 500,
    meaning: 'The service failed. With status 503, a dependency does not answer, or the process has reached a limit.',
    remedy:
      'Repeat the request with the same Idempotency-Key, if the operation accepts one. If `Retry-After` is sent, wait that long first.',
  },
} as const satisfies Record<string, { status: number; meaning: string; remedy: string }>;

export type ErrorCode = keyof typeof ERRORS;

export const ERROR_CODES = Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]];
