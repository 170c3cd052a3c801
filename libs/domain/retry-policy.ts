import { runError, type RunError } from './run-errors.ts';

const FIRST_DELAY_MS = 1_000;
const MAX_DELAY_MS = 60_000;
/** The longest accepted `Retry-After`. A Run that waits unseen for hours is worse than one that fails and can be retried. */
const MAX_RETRY_AFTER_MS = 10 * 60_000;

export interface Loss {
  /** Claims in a row that ended by an expired lease or a retryable failure, including this one. */
  losses: number;
  /** The number of losses in a row that fails the Run. */
  maxLosses: number;
  /** The failure that ended the claim; null if the lease expired. */
  failure: RunError | null;
  /** `Retry-After` of the provider, milliseconds. At most ten minutes of it count. */
  retryAfterMs?: number;
  /** A number in 0..1 that spreads retries. The caller supplies it, because the domain has no randomness. */
  jitter: number;
}

export type RetryDecision = { kind: 'retry'; delayMs: number } | { kind: 'fail'; error: RunError };

/**
 * Decides what follows a lost claim (docs/spec/decisions.md#losses). The Run of a lost worker is requeued immediately. A
 * retryable failure backs off exponentially, with jitter over the upper half. The last allowed loss fails the Run.
 */
export function decideRetry(loss: Loss): RetryDecision {
  const { losses, maxLosses, failure, retryAfterMs = 0, jitter } = loss;
  if (failure !== null && !failure.retryable) return { kind: 'fail', error: failure };
  if (losses >= maxLosses) return { kind: 'fail', error: failure ?? runError('worker_lost') };
  if (failure === null) return { kind: 'retry', delayMs: 0 };
  const ceiling = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (losses - 1));
  const backoffMs = Math.round(ceiling * (0.5 + jitter / 2));
  // Whole milliseconds, and never NaN, which would be stored as null and never be due.
  const askedMs = retryAfterMs > 0 ? Math.ceil(Math.min(retryAfterMs, MAX_RETRY_AFTER_MS)) : 0;
  return { kind: 'retry', delayMs: Math.max(askedMs, backoffMs) };
}
