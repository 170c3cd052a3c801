import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERRORS, ERROR_CODES } from './index.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/api/errors.md'), 'utf8');

it('has the codes of the contract, section 7, and their statuses of decisions, section 2', () => {
  expect(Object.fromEntries(ERROR_CODES.map((code) => [code, ERRORS[code].status]))).toEqual({
    invalid_request: 400,
    invalid_json: 400,
    unauthenticated: 401,
    forbidden: 403,
    not_found: 404,
    agent_not_published: 409,
    service_inactive: 409,
    readiness_blocked: 409,
    idempotency_conflict: 409,
    rate_limited: 429,
    internal_error: 500,
  });
});

it('is what docs/api/errors.md says, no more and no less', () => {
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  const expected = ERROR_CODES.map((code) => {
    const { status, meaning, remedy } = ERRORS[code];
    return `| \`${code}\` | ${status} | ${meaning} | ${remedy} |`;
  });
  expect(rows).toEqual(expected);
});
