import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERRORS } from '#contract';
import { REJECTIONS, reject, type RejectionCode } from '#domain';
import { DatabaseAway } from '#platform';
import { ApiError, errorEnvelope, rejectionError, toApiError } from './http-errors.ts';

const codes = Object.keys(REJECTIONS) as RejectionCode[];

it.each(codes)('maps %s: to a 4xx where a caller can cause it', (code) => {
  const error = rejectionError(reject(code));
  const callersCannot = ['thread_exists', 'stale_dispatch', 'stale_attempt', 'illegal_transition'].includes(code);
  expect(error instanceof ApiError).toBe(!callersCannot);
  if (error instanceof ApiError) expect([error.message, error.status < 500]).toEqual([REJECTIONS[code], true]);
});

it('tells every conflict of states in docs/api/errors.md', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/api/errors.md'), 'utf8');
  for (const code of codes) {
    const error = rejectionError(reject(code));
    const conflict = error instanceof ApiError && error.code === 'idempotency_conflict';
    if (conflict) expect(page).toContain(`| ${error.message} |`);
  }
});

it.each([
  ['DatabaseAway', new DatabaseAway(new Error('ECONNREFUSED 10.0.0.1'))],
  ['a broken connection', new Error('Connection terminated unexpectedly')],
  ['no connection within 2 s', new Error('timeout exceeded when trying to connect')],
])('answers %s with 503 and Retry-After', (_, error) => {
  const { status, code, headers, message } = toApiError(error);
  expect([status, code, headers['Retry-After']]).toEqual([503, 'internal_error', '1']);
  expect(message).not.toContain('10.0.0.1');
});

it.each([
  new Error('duplicate key value: (secret)'),
  'a string',
  undefined,
  null,
  Object.assign(new Error('secret'), { statusCode: 400 }),
])('answers what it does not know with 500, and says nothing of it', (error) => {
  const refusal = toApiError(error);
  expect(refusal.status).toBe(ERRORS.internal_error.status);
  expect(errorEnvelope(refusal)).toEqual({
    error: { code: 'internal_error', message: 'Something failed on our side.' },
  });
});
