import type { StoredEvent } from '#domain';
import { isDatabaseUnavailable } from '#platform';
import type { Append, AppendResult, LoadedThread, LostResult } from './append.ts';
import { metrics } from './metrics.ts';

/** The label of the metric by outcome. */
const LABELS = { appended: 'ok', conflict: 'conflict', key_taken: 'unmet', refused: 'unmet', unknown: 'away' } as const;

/** Sends an append and counts its result. */
export async function countAppend(
  { hook }: Append,
  send: () => Promise<AppendResult | LostResult>,
): Promise<AppendResult | LostResult> {
  const startedAt = performance.now();
  try {
    const result = await send();
    const label = LABELS[result.outcome];
    metrics.appends.inc({ outcome: result.outcome === 'refused' ? (hook?.countedAs ?? label) : label });
    if (result.outcome === 'appended') metrics.appendSeconds.observe((performance.now() - startedAt) / 1_000);
    return result;
  } catch (error) {
    metrics.appends.inc({ outcome: isDatabaseUnavailable(error) ? 'away' : 'failed' });
    throw error;
  }
}

/**
 * Counts each committed event once, in the process that committed it. Never throws, because the commit stands: skips numbers
 * that a counter would refuse.
 */
export function countEvents(before: LoadedThread, events: readonly StoredEvent[]): void {
  for (const event of events) countEvent(before, event);
}

function countEvent({ summaries }: LoadedThread, event: StoredEvent): void {
  switch (event.type) {
    case 'run.queued':
      return metrics.runsCreated.inc();
    case 'run.started': {
      const run = summaries.runs.get(event.runId ?? '');
      // Only the first start counts, because the creator does not wait for later ones. The same append may have the claim.
      if (run?.started_at === null) metrics.startSeconds.observe(secondsBetween(run.created_at, event.occurredAt));
      return;
    }
    case 'run.requeued':
      return metrics.runLosses.inc({ reason: event.data.reason });
    case 'run.failed':
      metrics.runFailures.inc({ code: event.data.error.code });
      return metrics.runsEnded.inc({ outcome: 'failed' });
    case 'run.completed':
      return metrics.runsEnded.inc({ outcome: 'completed' });
    case 'run.cancelled':
      return metrics.runsEnded.inc({ outcome: 'cancelled' });
    case 'run.expired':
      return metrics.runsEnded.inc({ outcome: 'expired' });
    case 'tool.completed':
      return metrics.toolCalls.inc({ outcome: event.data.outcome });
    case 'usage.recorded':
      countTokens('input', event.data.inputTokens);
      countTokens('output', event.data.outputTokens);
      return countTokens('cached', event.data.cachedInputTokens);
    default:
      return;
  }
}

/** Skips invalid numbers. Older releases stored usage as the provider reported it. */
function countTokens(direction: 'input' | 'output' | 'cached', tokens: unknown): void {
  if (typeof tokens === 'number' && Number.isFinite(tokens) && tokens > 0) metrics.tokens.inc({ direction }, tokens);
}

const secondsBetween = (from: string, to: string): number => (Date.parse(to) - Date.parse(from)) / 1_000;
