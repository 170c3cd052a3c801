import fc from 'fast-check';
import { randomRuns } from './random.testing.ts';
import { decideRetry, type Loss } from './retry-policy.ts';
import { RUN_ERRORS, runError, type RunErrorCode } from './run-errors.ts';

const loss = (more: Partial<Loss>): Loss => ({ losses: 1, maxLosses: 3, failure: null, jitter: 1, ...more });
const busy = runError('provider_rate_limited');

test.each([
  ['immediately after a lost worker', loss({}), 0],
  ['1 s after the first failure', loss({ failure: busy }), 1_000],
  ['2 s after the second failure', loss({ failure: busy, losses: 2 }), 2_000],
  ['16 s after the fifth failure', loss({ failure: busy, losses: 5, maxLosses: 9 }), 16_000],
  ['after at most a minute', loss({ failure: busy, losses: 50, maxLosses: 100 }), 60_000],
  ['with jitter over the upper half', loss({ failure: busy, jitter: 0 }), 500],
  ['after Retry-After if it is longer', loss({ failure: busy, retryAfterMs: 5_000 }), 5_000],
  ['not after Retry-After if it is shorter', loss({ failure: busy, retryAfterMs: 10 }), 1_000],
  ['after whole milliseconds, rounded up', loss({ failure: busy, retryAfterMs: 5_000.2 }), 5_001],
  ['after at most ten minutes of Retry-After', loss({ failure: busy, retryAfterMs: 86_400_000 }), 600_000],
  ['with a Retry-After that is not a number', loss({ failure: busy, retryAfterMs: NaN }), 1_000],
  ['with a Retry-After in the past', loss({ failure: busy, retryAfterMs: -5_000 }), 1_000],
])('retry: %s', (_why, given, delayMs) => {
  expect(decideRetry(given)).toEqual({ kind: 'retry', delayMs });
});

test.each([
  ['the last loss allowed, with its failure', loss({ losses: 3, failure: busy }), busy],
  ['the last loss allowed, without one', loss({ losses: 3 }), runError('worker_lost')],
  ['a limit of one', loss({ maxLosses: 1 }), runError('worker_lost')],
  ['a failure that is not retryable', loss({ failure: runError('provider_auth') }), runError('provider_auth')],
])('fail: %s', (_why, given, error) => {
  expect(decideRetry(given)).toEqual({ kind: 'fail', error });
});

test('retries exactly the errors that are retryable', () => {
  for (const code of Object.keys(RUN_ERRORS) as RunErrorCode[]) {
    const error = runError(code);
    expect([code, decideRetry(loss({ failure: error })).kind]).toEqual([code, error.retryable ? 'retry' : 'fail']);
  }
});

test('every delay is a whole number of milliseconds, at most ten minutes', () => {
  const anyLoss = fc.record({
    losses: fc.integer({ min: 1, max: 2_000 }),
    maxLosses: fc.constant(2_001),
    failure: fc.constantFrom(null, busy),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    retryAfterMs: fc.double(),
  });
  fc.assert(
    fc.property(anyLoss, (given) => {
      const decision = decideRetry(given);
      const delayMs = decision.kind === 'retry' ? decision.delayMs : NaN;
      expect(Number.isInteger(delayMs)).toBe(true);
      expect(delayMs).toBeGreaterThanOrEqual(0);
      expect(delayMs).toBeLessThanOrEqual(600_000);
    }),
    randomRuns(1_000),
  );
});
