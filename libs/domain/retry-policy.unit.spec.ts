import fc from 'fast-check';
import type { FailureStreak } from './events.ts';
import { randomRuns } from './random.testing.ts';
import { decideRetry, type EndedClaim } from './retry-policy.ts';
import { RUN_ERRORS, runError, type RunErrorCode } from './run-errors.ts';

const NOW = '2026-01-01T00:10:00.000Z';
const ago = (ms: number): string => new Date(Date.parse(NOW) - ms).toISOString();
const BUSY = runError('provider_rate_limited');
const CRASHED = runError('harness_crashed');

const ended = (more: Partial<EndedClaim>): EndedClaim => ({
  ...{ losses: 0, streak: undefined, failure: null, jitter: 1, now: NOW },
  ...{ limits: { maxLosses: 3, providerRetryMs: 300_000 } },
  ...more,
});
const failures = (of: FailureStreak['of'], count: number, ms = 0): FailureStreak => ({
  ...{ of, since: ago(ms), failures: count },
});
const busy = (more: Partial<EndedClaim> = {}): EndedClaim => ended({ failure: BUSY, ...more });
const crashed = (count: number): EndedClaim => ended({ failure: CRASHED, streak: failures('other', count) });

test.each([
  ['immediately after a lost worker', ended({}), 0],
  ['1 s after the first failure', busy(), 1_000],
  ['2 s after the second failure', busy({ streak: failures('provider', 1) }), 2_000],
  ['16 s after the fifth failure', busy({ streak: failures('provider', 4) }), 16_000],
  ['after at most a minute', busy({ streak: failures('provider', 49) }), 60_000],
  ['with jitter over the upper half', busy({ jitter: 0 }), 500],
  ['after Retry-After if it is longer', busy({ retryAfterMs: 5_000 }), 5_000],
  ['not after Retry-After if it is shorter', busy({ retryAfterMs: 10 }), 1_000],
  ['after whole milliseconds, rounded up', busy({ retryAfterMs: 5_000.2 }), 5_001],
  [
    'after at most ten minutes of Retry-After',
    busy({ retryAfterMs: 86_400_000, limits: { maxLosses: 3, providerRetryMs: 600_000 } }),
    600_000,
  ],
  ['with a Retry-After that is not a number', busy({ retryAfterMs: NaN }), 1_000],
  ['with a Retry-After in the past', busy({ retryAfterMs: -5_000 }), 1_000],
  [
    'at the end of the time of an outage if Retry-After is longer',
    busy({ streak: failures('provider', 2, 290_000), retryAfterMs: 11_000 }),
    10_000,
  ],
  ['at the end of the time of an outage', busy({ streak: failures('provider', 20, 299_000) }), 1_000],
  [
    'at the default end of the time of an outage',
    busy({ streak: failures('provider', 20, 899_000), limits: { maxLosses: 3 } }),
    1_000,
  ],
  ['1 s after the first failure of another part', ended({ failure: CRASHED }), 1_000],
  ['2 s after the second failure of another part', crashed(1), 2_000],
  ['1 s after the first failure after an outage', ended({ failure: CRASHED, streak: failures('provider', 9) }), 1_000],
])('retry: %s', (_why, given, delayMs) => {
  expect(decideRetry(given)).toMatchObject({ kind: 'retry', delayMs });
});

test.each([
  ['the last loss allowed', ended({ losses: 2 }), runError('worker_lost')],
  ['a limit of one', ended({ limits: { maxLosses: 1 } }), runError('worker_lost')],
  ['a failure that is not retryable', ended({ failure: runError('provider_auth') }), runError('provider_auth')],
  ['the end of the time of an outage', busy({ streak: failures('provider', 2, 300_000) }), BUSY],
  ['no time for an outage', busy({ limits: { maxLosses: 3, providerRetryMs: 0 } }), BUSY],
  ['the last failure allowed of another part', crashed(2), CRASHED],
])('fail: %s', (_why, given, error) => {
  expect(decideRetry(given)).toEqual({ kind: 'fail', error });
});

test('a turn to call a failing provider replaces the back-off, within the time of the outage', () => {
  const turn = { circuit: 'c', waitMs: 90_000 };
  const first = { of: 'provider', since: NOW, failures: 1, circuit: 'c' };
  expect(decideRetry(busy({ turn }))).toMatchObject({ delayMs: 90_000, streak: first });
  const late = failures('provider', 3, 290_000);
  expect(decideRetry(busy({ turn, streak: late }))).toMatchObject({ delayMs: 10_000 });
  const { circuit: _, ...without } = first;
  const again = decideRetry(busy({ streak: { ...failures('provider', 1), circuit: 'c' } }));
  expect(again).toMatchObject({ delayMs: 2_000, streak: { ...without, failures: 2 } });
  expect(again).not.toHaveProperty('streak.circuit');
});

test('counts lost workers and failures apart', () => {
  const streak = failures('provider', 7, 100_000);
  expect(decideRetry(ended({ losses: 1, streak }))).toMatchObject({ losses: 2, streak });
  const more = { losses: 2, streak: { ...streak, failures: 8 } };
  expect(decideRetry(busy({ losses: 2, streak }))).toMatchObject(more);
  const other = { losses: 2, streak: failures('other', 1) };
  expect(decideRetry(ended({ losses: 2, streak, failure: CRASHED }))).toMatchObject(other);
});

test('retries exactly the errors that are retryable', () => {
  for (const code of Object.keys(RUN_ERRORS) as RunErrorCode[]) {
    const error = runError(code);
    expect([code, decideRetry(ended({ failure: error })).kind]).toEqual([code, error.retryable ? 'retry' : 'fail']);
  }
});

test('every delay is a whole number of milliseconds, at most ten minutes', () => {
  const anyClaim = fc.record({
    losses: fc.constant(0),
    streak: fc.record({
      of: fc.constantFrom('provider' as const, 'other' as const),
      since: fc.constant(NOW),
      failures: fc.integer({ min: 1, max: 2_000 }),
    }),
    limits: fc.constant({ maxLosses: 2_002, providerRetryMs: 3_600_000 }),
    failure: fc.constantFrom(null, BUSY, CRASHED),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    retryAfterMs: fc.double(),
    now: fc.constant(NOW),
  });
  fc.assert(
    fc.property(anyClaim, (given) => {
      const decision = decideRetry(given);
      const delayMs = decision.kind === 'retry' ? decision.delayMs : NaN;
      expect(Number.isInteger(delayMs)).toBe(true);
      expect(delayMs).toBeGreaterThanOrEqual(0);
      expect(delayMs).toBeLessThanOrEqual(600_000);
    }),
    randomRuns(1_000),
  );
});
