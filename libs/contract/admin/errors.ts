/** Error codes of the admin API with their HTTP status; a closed list, as that of the Agent Threads API is. */
export const ADMIN_ERRORS = {
  invalid_request: { status: 400, meaning: 'Path, query or body do not have the shape of this operation.' },
  invalid_json: { status: 400, meaning: 'The body is not JSON in UTF-8.' },
  unauthenticated: { status: 401, meaning: 'The token is missing, malformed, unknown, revoked or expired.' },
  forbidden: { status: 403, meaning: 'The token is valid and not an operator’s.' },
  not_found: { status: 404, meaning: 'What the path or the body names does not exist; or there is no such path.' },
  conflict: { status: 409, meaning: 'The state of what is named does not allow it, or has changed meanwhile.' },
  rate_limited: { status: 429, meaning: 'The token has used up its requests for now; wait for `Retry-After`.' },
  internal_error: { status: 500, meaning: 'Something failed on our side; with 503 the database did not answer.' },
} as const satisfies Record<string, { status: number; meaning: string }>;

export type AdminErrorCode = keyof typeof ADMIN_ERRORS;
