import type { FailureCauseRecord, TimelineSpan } from '#contract';

/** An attempt of a Run, from the claim by its worker to its end. */
export interface Attempt {
  attempt: number;
  /** The worker. */
  holder: string | null;
  startedAt: string;
  /** Null while it is active. */
  endedAt: string | null;
  modelSteps: number;
  toolCalls: number;
  /** Null if no step has stored its usage. */
  inputTokens: number | null;
  outputTokens: number | null;
  /** The outcome of the span that ended last. Null while the attempt is active. */
  outcome: TimelineSpan['outcome'];
  /** The cause of the attempt's failure; null if it did not fail, or the cause is not known. */
  cause: FailureCauseRecord | null;
}

/** Sums up the spans of a timeline by attempt, in their order. Waits between attempts belong to none. */
export function attemptsOf(spans: readonly TimelineSpan[]): Attempt[] {
  const attempts = new Map<number, Attempt>();
  for (const span of spans) {
    if (span.attempt === null) continue;
    const attempt = attempts.get(span.attempt) ?? begin(span, span.attempt);
    attempts.set(span.attempt, attempt);
    if (span.kind === 'model') attempt.modelSteps += 1;
    if (span.kind === 'tool') attempt.toolCalls += 1;
    attempt.inputTokens = add(attempt.inputTokens, span.inputTokens);
    attempt.outputTokens = add(attempt.outputTokens, span.outputTokens);
    end(attempt, span);
  }
  return [...attempts.values()];
}

const begin = ({ holder, startedAt }: TimelineSpan, attempt: number): Attempt => ({
  ...{ attempt, holder, startedAt, endedAt: startedAt },
  ...{ modelSteps: 0, toolCalls: 0, inputTokens: null, outputTokens: null, outcome: null, cause: null },
});

/**
 * Applies the end of a span. Spans overlap, so the latest end counts. While a span is active, the attempt has no end.
 * If a Run fails between two spans, the earlier span has the cause.
 */
function end(attempt: Attempt, { endedAt, outcome, cause }: TimelineSpan): void {
  if (attempt.endedAt === null || (endedAt !== null && endedAt < attempt.endedAt)) return;
  attempt.endedAt = endedAt;
  attempt.outcome = outcome === 'ok' && cause ? 'error' : outcome;
  attempt.cause = cause ?? null;
}

const add = (sum: number | null, more: number | null): number | null => (more === null ? sum : (sum ?? 0) + more);
