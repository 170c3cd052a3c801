import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ADMIN_ERROR_REASONS, ERRORS, ERROR_CODES, ERROR_REASONS, reasonsOf, SEND_WARNINGS } from './index.ts';

const page = (name: string): string => readFileSync(join(import.meta.dirname, '../../docs', name), 'utf8');

/** Rows of the table below a heading; each begins with a code in backticks. */
function rowsBelow(heading: string, text: string): string[] {
  const section = text.split(/^(?=#)/m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  return section.split('\n').filter((line) => line.startsWith('| `'));
}

// docs/spec/agent-threads-api.md#errors has the codes, and docs/spec/decisions.md#errors their statuses.
it('has the codes of the specification, and their statuses', () => {
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
  const rows = rowsBelow('# Errors', page('api/errors.md'));
  const expected = ERROR_CODES.map((code) => {
    const { status, meaning, remedy } = ERRORS[code];
    return `| \`${code}\` | ${status} | ${meaning} | ${remedy} |`;
  });
  expect(rows).toEqual(expected);
});

describe('reasons', () => {
  const all = Object.entries({ ...ERROR_REASONS, ...ADMIN_ERROR_REASONS });

  it('are words in snake_case, each with a code of the contract', () => {
    for (const [reason, { code }] of all) {
      expect([reason, reason]).toEqual([reason, expect.stringMatching(/^[a-z]+(_[a-z]+)*$/)]);
      expect(ERROR_CODES).toContain(code);
    }
  });

  it('come with the status of their code, or with a status that has no separate code', () => {
    const others: Record<string, number[]> = {
      invalid_request: [405, 408, 413, 415, 416, 417, 431],
      not_found: [410],
      idempotency_conflict: [412],
      internal_error: [503],
    };
    for (const [reason, { code, status }] of all) {
      expect([reason, [ERRORS[code].status, ...(others[code] ?? [])]]).toEqual([
        reason,
        expect.arrayContaining([status]),
      ]);
    }
  });

  it('exist for every code', () => {
    expect(new Set(Object.values(ERROR_REASONS).map(({ code }) => code))).toEqual(new Set(ERROR_CODES));
    expect(reasonsOf(409, ['service_inactive', 'agent_not_published'])).toEqual([
      'agent_not_published',
      'api_access_off',
      'no_live_version',
      'browser_tokens_off',
    ]);
    expect(reasonsOf(413, ['invalid_request'])).toEqual(['body_too_large', 'file_too_large', 'file_quota_full']);
  });

  it.each([
    ['api/errors.md', '## Reasons', ERROR_REASONS],
    ['operators.md', '## The admin API', ADMIN_ERROR_REASONS],
  ])('are exactly those that docs/%s lists', (name, heading, reasons) => {
    const expected = Object.entries(reasons).map(
      ([reason, { code, status, meaning }]) => `| \`${reason}\` | \`${code}\` | ${status} | ${meaning} |`,
    );
    expect(rowsBelow(heading, page(name))).toEqual(expected);
  });
});

it('has exactly the warnings that docs/api/runs.md lists', () => {
  const expected = Object.entries(SEND_WARNINGS).map(([code, meaning]) => `| \`${code}\` | ${meaning} |`);
  expect(rowsBelow('## Warnings', page('api/runs.md'))).toEqual(expected);
});
