import type { FailureStreak, RunLimits } from './events.ts';
import { runError, type RunError, type RunErrorCode } from './run-errors.ts';

const FIRST_DELAY_MS = 1_000;
const MAX_DELAY_MS = 60_000;
/** The longest accepted `Retry-After`. A Run that waits unseen for hours is worse than one that fails and can be retried. */
export const MAX_RETRY_AFTER_MS = 10 * 60_000;
/** The default of `limits.providerRetryMs`, and its value for Runs of releases that did not know it. */
export const PROVIDER_RETRY_MS = 15 * 60_000;

const OUTAGES: readonly RunErrorCode[] = ['provider_unavailable', 'provider_rate_limited'];

/** Returns whether a model provider does not answer, is overloaded or limits its callers. */
export const isOutage = (code: RunErrorCode): boolean => OUTAGES.includes(code);

/** When a Run may call a provider whose circuit breaker is open: in `waitMs` milliseconds. */
export interface CircuitTurn {
  circuit: string;
  waitMs: number;
}

export interface EndedClaim {
  /** Claims of the Run in a row that ended by an expired lease, without this one. */
  losses: number;
  /** Retryable failures in a row, without this one; undefined if there are none. */
  streak: FailureStreak | undefined;
  limits: Pick<RunLimits, 'maxLosses' | 'providerRetryMs'>;
  /** The failure that ended the claim; null if the lease expired. */
  failure: RunError | null;
  /** `Retry-After` of the provider, milliseconds. At most ten minutes of it count. */
  retryAfterMs?: number;
  /** The Run's turn to call a provider that fails for all. It replaces the back-off. */
  turn?: CircuitTurn | undefined;
  /** A number in 0..1 that spreads retries. The caller supplies it, because the domain has no randomness. */
  jitter: number;
  /** The time of the end, RFC 3339. */
  now: string;
}

export type RetryDecision =
  | { kind: 'retry'; delayMs: number; losses: number; streak: FailureStreak | undefined }
  | { kind: 'fail'; error: RunError };

/**
 * Decides what follows the end of a claim (docs/spec/decisions.md#losses). The Run of a lost worker is requeued immediately, until
 * `maxLosses` workers in a row were lost. A retryable failure backs off exponentially, with jitter over the upper half. An
 * outage of the model provider is retried for `providerRetryMs`, other failures until there are `maxLosses` in a row.
 */
export function decideRetry(ended: EndedClaim): RetryDecision {
  const { losses, streak, limits, failure } = ended;
  if (failure === null) {
    if (losses + 1 >= limits.maxLosses) return { kind: 'fail', error: runError('worker_lost') };
    return { kind: 'retry', delayMs: 0, losses: losses + 1, streak };
  }
  if (!failure.retryable) return { kind: 'fail', error: failure };
  const next = extend(streak, isOutage(failure.code) ? 'provider' : 'other', ended);
  const delayMs = next.of === 'provider' ? delayInOutage(ended, next) : delayOfOther(ended, next);
  return delayMs === null ? { kind: 'fail', error: failure } : { kind: 'retry', delayMs, losses, streak: next };
}

function extend(streak: FailureStreak | undefined, of: FailureStreak['of'], { turn, now }: EndedClaim): FailureStreak {
  const { since, failures } = streak?.of === of ? streak : { since: now, failures: 0 };
  return { of, since, failures: failures + 1, ...(turn && { circuit: turn.circuit }) };
}

/** Returns null if `maxLosses` is reached. */
function delayOfOther({ limits, retryAfterMs, jitter }: EndedClaim, { failures }: FailureStreak): number | null {
  return failures >= limits.maxLosses ? null : Math.max(asked(retryAfterMs), backOff(failures, jitter));
}

/** Returns null if the time of the outage is over. The last attempt is at its end, also if the provider asks for a longer wait. */
function delayInOutage(
  { limits, retryAfterMs, turn, jitter, now }: EndedClaim,
  { since, failures }: FailureStreak,
): number | null {
  const { providerRetryMs = PROVIDER_RETRY_MS } = limits;
  const leftMs = Date.parse(since) + providerRetryMs - Date.parse(now);
  const waitMs = turn?.waitMs ?? Math.max(asked(retryAfterMs), backOff(failures, jitter));
  return leftMs <= 0 ? null : Math.min(leftMs, waitMs);
}

function backOff(failures: number, jitter: number): number {
  const ceiling = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1));
  return Math.round(ceiling * (0.5 + jitter / 2));
}

/** Returns whole milliseconds, and never NaN, which would be stored as null and never be due. */
function asked(retryAfterMs = 0): number {
  return retryAfterMs > 0 ? Math.ceil(Math.min(retryAfterMs, MAX_RETRY_AFTER_MS)) : 0;
}
