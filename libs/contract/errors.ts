/**
 * The closed catalogue of error codes (docs/spec/agent-threads-api.md#errors), with the HTTP status of each
 * (docs/spec/decisions.md#errors). docs/api/errors.md holds the same for readers, kept equal by a test.
 * `invalid_request` also comes as 413 (body too large) and 415 (wrong content type), `not_found` as 410 (lost
 * content), `internal_error` also as 503 (database away).
 */
export const ERRORS = {
  invalid_request: {
    status: 400,
    meaning: 'The request’s path, query, headers or body do not have the shape of this operation.',
    remedy: 'Correct what the message names. It will be refused again as it is.',
  },
  invalid_json: {
    status: 400,
    meaning: 'The body is not JSON in UTF-8.',
    remedy: 'Send one JSON document, UTF-8, with `Content-Type: application/json`.',
  },
  unauthenticated: {
    status: 401,
    meaning: 'The access token is missing, malformed, unknown, revoked or expired.',
    remedy: 'Send `Authorization: Bearer <ACCESS_TOKEN>` with a valid token.',
  },
  forbidden: {
    status: 403,
    meaning: 'The caller may not use this Agent.',
    remedy: 'Have the person added to the organization or the Agent, or the Agent to the service token.',
  },
  not_found: {
    status: 404,
    meaning: 'The resource does not exist, or the caller may not see it; or there is no such path.',
    remedy: 'Check the id, the token and the path.',
  },
  agent_not_published: {
    status: 409,
    meaning: 'The Agent is not published.',
    remedy: 'Have the Agent’s owner publish it.',
  },
  service_inactive: {
    status: 409,
    meaning: 'The Agent is published, but its API access is switched off or it has no live version.',
    remedy: 'Have the Agent’s owner switch API access on, or make a version live.',
  },
  readiness_blocked: {
    status: 409,
    meaning: 'The Agent cannot run now: something that it needs is missing. No Run was made.',
    remedy: 'Have the Agent’s owner provide what the message names, then send the request again.',
  },
  idempotency_conflict: {
    status: 409,
    meaning:
      'The state of the Thread rejects the action, or the Idempotency-Key belongs to another request or to one in progress.',
    remedy:
      'Read `Spool-Error-Reason`. Wait for `Retry-After` where it is given; else act on the Thread’s state or use a new key.',
  },
  rate_limited: {
    status: 429,
    meaning: 'The token has used up its requests for now.',
    remedy: 'Wait for the seconds in `Retry-After`.',
  },
  internal_error: {
    status: 500,
    meaning:
      'Something failed on our side; with status 503 a part that the request needs does not answer, or the process is full.',
    remedy:
      'Repeat the request, with the same Idempotency-Key where one is taken; after `Retry-After` where it is given.',
  },
} as const satisfies Record<string, { status: number; meaning: string; remedy: string }>;

export type ErrorCode = keyof typeof ERRORS;

export const ERROR_CODES = Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]];
