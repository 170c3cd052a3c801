import { FAST, WAITS, counter, histogram } from '#platform';

/** The metrics of appends, and of events by the process that committed them. docs/operations/metrics.md describes them. */
export const metrics = {
  appends: counter('spool_appends_total', 'Appends, by outcome.', {
    outcome: ['ok', 'conflict', 'refused', 'limited', 'unmet', 'away', 'failed'],
  }),
  appendSeconds: histogram(
    'spool_append_duration_seconds',
    'Duration in seconds of successful appends, including the wait for a connection.',
    FAST,
  ),
  runsCreated: counter('spool_runs_created_total', 'Created Runs.'),
  startSeconds: histogram(
    'spool_run_start_latency_seconds',
    'Delay in seconds from the creation of a Run to its first start, including boot, by the times of its events.',
    WAITS,
  ),
  runsEnded: counter('spool_runs_ended_total', 'Ended Runs, by outcome.', {
    outcome: ['completed', 'failed', 'cancelled', 'expired'],
  }),
  runFailures: counter('spool_run_failures_total', 'Failed Runs, by error code.', { code: null }),
  runLosses: counter(
    'spool_run_losses_total',
    'Claims that ended before their Run, which returned to the queue, by reason.',
    {
      reason: ['lease_expired', 'retryable_failure', 'handed_over'],
    },
  ),
  toolCalls: counter('spool_tool_calls_total', 'Tool calls with a result, including calls that were not run.', {
    outcome: ['ok', 'error', 'refused', 'unknown'],
  }),
  tokens: counter('spool_tokens_total', 'Tokens of model calls; cached tokens are also part of the input.', {
    direction: ['input', 'output', 'cached'],
  }),
};
