import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { failedBy, RUN_ERRORS, runError, type RunErrorCode } from './run-errors.ts';

const DOCUMENT = join(import.meta.dirname, '../../docs/run-errors.md');

const codes = Object.keys(RUN_ERRORS) as RunErrorCode[];

test('docs/run-errors.md has the errors of the catalogue in its order', () => {
  const table = readFileSync(DOCUMENT, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  const [header, , ...rows] = table;
  expect(header).toEqual(['code', 'message', 'retryable', 'remedy']);
  const catalogue = codes.map((code) => {
    const { message, retryable, remedy } = RUN_ERRORS[code];
    return [`\`${code}\``, message, retryable ? 'yes' : 'no', remedy];
  });
  expect(rows).toEqual(catalogue);
});

test('the message of a failure has the status of the provider, and nothing else of the cause', () => {
  const cause = { source: 'provider', name: 'api.example', status: 503, message: 'Too busy' } as const;
  const { status: _, ...unanswered } = cause;
  const error = runError('provider_unavailable');
  expect(failedBy('provider_unavailable', cause)).toEqual({ ...error, message: 'The model provider answered 503.' });
  expect(failedBy('provider_unavailable', unanswered)).toEqual(error);
  expect(failedBy('provider_auth', cause)).toEqual(runError('provider_auth'));
  expect(failedBy('internal', undefined)).toEqual(runError('internal'));
});

// The catalogue of docs/spec/decisions.md#run-errors.
test('the catalogue has exactly these codes', () => {
  expect(codes).toEqual([
    'provider_unavailable',
    'provider_rate_limited',
    'provider_rejected',
    'provider_quota_exhausted',
    'provider_auth',
    'content_filtered',
    'context_too_long',
    'tool_server_unavailable',
    'tool_server_misconfigured',
    'step_limit_reached',
    'token_limit_reached',
    'cost_limit_reached',
    'worker_lost',
    'harness_crashed',
    'output_too_large',
    'storage_unavailable',
    'thread_unreadable',
    'internal',
  ]);
});

test.each(codes)('%s has texts that a caller can see', (code) => {
  const { message, retryable, remedy } = RUN_ERRORS[code];
  expect(runError(code)).toEqual({ code, message, retryable });
  for (const text of [message, remedy]) {
    // One sentence or more, in a table's cell; no path, host or trace.
    expect(text).toMatch(/^[A-Z].*\.$/);
    expect(text).not.toMatch(/[|\n\\@]|\/\w|https?:|\d+\.\d+\.|\bat \w+ \(/);
  }
});

test('an error can be more exact than the catalogue', () => {
  expect(runError('internal', { message: 'The disk is full.', retryable: true })).toEqual({
    code: 'internal',
    message: 'The disk is full.',
    retryable: true,
  });
});
