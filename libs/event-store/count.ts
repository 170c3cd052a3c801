import type { StoredEvent } from '#domain';
import { isDatabaseAway, metrics } from '#platform';
import type { AppendOutcome, LoadedThread } from './append.ts';

/** What an append's outcome is to who watches the service. */
const OUTCOMES: Record<AppendOutcome, 'ok' | 'conflict' | 'limited' | 'unmet' | 'away'> = {
  appended: 'ok',
  conflict: 'conflict',
  limited: 'limited',
  reference_taken: 'unmet',
  key_seen: 'unmet',
  key_in_progress: 'unmet',
  files_refused: 'unmet',
  files_full: 'unmet',
  folder_moved: 'unmet',
  folder_full: 'unmet',
  quota_full: 'unmet',
  unknown: 'away',
};

/** Sends an append and counts what becomes of it. */
export async function countAppend(send: () => Promise<AppendOutcome>): Promise<AppendOutcome> {
  const startedAt = performance.now();
  try {
    const outcome = await send();
    metrics.appends.inc({ outcome: OUTCOMES[outcome] });
    if (outcome === 'appended') metrics.appendSeconds.observe((performance.now() - startedAt) / 1_000);
    return outcome;
  } catch (error) {
    metrics.appends.inc({ outcome: isDatabaseAway(error) ? 'away' : 'failed' });
    throw error;
  }
}

/**
 * Counts committed events, in the process that committed them: each event once. Never throws, because the commit stands: numbers
 * that a counter would refuse are not counted.
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
      // Its claim may be in the same append, and so may all else; a later start is not what its creator waited for.
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

/** Events of older releases may have any number: usage was stored as the provider reported it. */
function countTokens(direction: 'input' | 'output' | 'cached', tokens: unknown): void {
  if (typeof tokens === 'number' && Number.isFinite(tokens) && tokens > 0) metrics.tokens.inc({ direction }, tokens);
}

const secondsBetween = (from: string, to: string): number => (Date.parse(to) - Date.parse(from)) / 1_000;
