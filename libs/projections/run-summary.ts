import {
  nextRunStatus,
  type FailureCause,
  type FinalOutput,
  type RunError,
  type RunMove,
  type RunStatus,
  type RunTrigger,
  type StoredEvent,
} from '#domain';
import type { ColumnType } from './column-types.ts';
import { change } from './thread-summary.ts';

/** One row of `run_summaries`, the RunSummary of the contract. Times are RFC 3339. */
export interface RunSummary {
  run_id: string;
  thread_id: string;
  status: RunStatus;
  trigger: RunTrigger;
  created_at: string;
  /** The time of the first `started`; shown to callers as null while the status is `queued`. */
  started_at: string | null;
  completed_at: string | null;
  updated_at: string;
  error: RunError | null;
  final_output: FinalOutput | null;
  /** Why the last failed attempt failed, for operators; also of a Run that completed later. */
  cause: AttemptCause | null;
}

/** The cause of a failed attempt, with its number. */
export type AttemptCause = FailureCause & { attempt: number | null };

/** The columns of `run_summaries`. Statements list them by `:run_columns`. */
export const RUN_COLUMNS = {
  run_id: 'text',
  thread_id: 'text',
  status: 'text',
  trigger: 'text',
  created_at: 'time',
  started_at: 'time',
  completed_at: 'time',
  updated_at: 'time',
  error: 'json',
  final_output: 'json',
  cause: 'json',
} satisfies Record<keyof RunSummary, ColumnType>;

/** Folds the events of one Run. Pure. */
export function foldRunSummary(row: RunSummary | null, event: StoredEvent): RunSummary | null {
  if (event.type === 'run.queued' && event.runId !== null && row === null) {
    return {
      run_id: event.runId,
      thread_id: event.threadId,
      status: 'queued',
      trigger: event.data.trigger,
      created_at: event.occurredAt,
      started_at: null,
      completed_at: null,
      updated_at: event.occurredAt,
      error: null,
      final_output: null,
      cause: null,
    };
  }
  return row && change(row, changedFields(row, event), event.occurredAt);
}

function changedFields(row: RunSummary, event: StoredEvent): Partial<RunSummary> {
  if (!event.type.startsWith('run.')) return {};
  const status = nextRunStatus(row.status, event.type.slice('run.'.length) as RunMove);
  if (status === null) return {};
  switch (event.type) {
    case 'run.started':
      return { status, started_at: row.started_at ?? event.occurredAt };
    case 'run.completed':
      return { status, completed_at: event.occurredAt, final_output: event.data.finalOutput };
    case 'run.failed':
      return { status, completed_at: event.occurredAt, error: event.data.error, ...causeOf(event) };
    case 'run.requeued':
      return { status, ...causeOf(event) };
    case 'run.cancelled':
    case 'run.expired':
      return { status, completed_at: event.occurredAt };
    default:
      return { status };
  }
}

/** Only this release and later ones store causes. So an earlier one, which does not know the column, leaves it correct. */
function causeOf({ attempt, data: { cause } }: Caused): Partial<Pick<RunSummary, 'cause'>> {
  return cause === undefined ? {} : { cause: { attempt, ...cause } };
}

type Caused = { data: { cause?: FailureCause } } & Pick<StoredEvent, 'attempt'>;
