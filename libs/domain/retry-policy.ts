import { runError, type RunError } from './run-errors.ts';

const FIRST_DELAY_MS = 1_000;
const MAX_DELAY_MS = 60_000;
/** A provider may ask for any time; a Run that waits for hours unseen is worse than one that fails and can be retried. */
const MAX_RETRY_AFTER_MS = 10 * 60_000;

export interface Loss {
  /** Claims in a row that ended by an expired lease or a retryable failure, this one included. */
  losses: number;
  /** How many losses in a row fail the Run. */
  maxLosses: number;
  /** The failure that ended the claim; null when the lease expired. */
  failure: RunError | null;
  /** What the provider asked for (`Retry-After`), milliseconds; at most ten minutes of it count. */
  retryAfterMs?: number;
  /** A number in 0..1 that spreads retries; comes in because the domain has no random. */
  jitter: number;
}

export type RetryDecision = { kind: 'retry'; delayMs: number } | { kind: 'fail'; error: RunError };

/**
 * What follows a lost claim (docs/spec/decisions.md#losses): a lost worker's Run goes back at once, a retryable
 * failure backs off exponentially with full jitter over the upper half, and the last loss allowed fails the Run.
 */
export function decideRetry(loss: Loss): RetryDecision {
  const { losses, maxLosses, failure, retryAfterMs = 0, jitter } = loss;
  if (failure !== null && !failure.retryable) return { kind: 'fail', error: failure };
  if (losses >= maxLosses) return { kind: 'fail', error: failure ?? runError('worker_lost') };
  if (failure === null) return { kind: 'retry', delayMs: 0 };
  const ceiling = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (losses - 1));
  const backoffMs = Math.round(ceiling * (0.5 + jitter / 2));
  // Whole milliseconds, and never NaN: a due date that is null would never come.
  const askedMs = retryAfterMs > 0 ? Math.ceil(Math.min(retryAfterMs, MAX_RETRY_AFTER_MS)) : 0;
  return { kind: 'retry', delayMs: Math.max(askedMs, backoffMs) };
}
