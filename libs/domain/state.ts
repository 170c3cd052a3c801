import type { AgentKind, FailureStreak, PermissionDecision, RunLimits, RunTrigger, ThreadStatus } from './events.ts';
import type { RunStatus } from './run-transitions.ts';

/**
 * The input of the decider: the fold of a stream, bounded in size for a stream of any length. It is stored beside the stream
 * as the state row (docs/adr/0004). Commands read the row, never the stream.
 */
export type ThreadState = NoThread | Thread;

export interface NoThread {
  lifecycle: 'none';
}

export interface Thread {
  lifecycle: 'active' | 'archived' | 'terminated';
  agentId: string;
  organizationId: string;
  kind: AgentKind;
  /** The status that the log entered last. */
  status: ThreadStatus;
  /** Runs that are not terminal, oldest first. The first is the current Run; only it can be claimed. */
  runs: LiveRun[];
  /** The newest Run, live or ended, and whether its failure can be retried. `…/retry` applies to it. Null for none. */
  newestRun: { id: string; status: RunStatus; retryable: boolean } | null;
  /**
   * Files that callers attached and that the next message mounts (docs/spec/decisions.md#early-files). Omitted if there are
   * none, as in state rows of releases without files.
   */
  unmounted?: readonly string[];
}

export type LiveRun = QueuedRun | ClaimedRun | WaitingRun;

interface RunBasics {
  id: string;
  trigger: RunTrigger;
  agentVersion: number;
  limits: RunLimits;
  /** The fencing token: one higher at each claim, 0 before the first (docs/spec/decisions.md#claims). */
  attempt: number;
  /** The number of the valid dispatch to the queue. It rises by one each time the Run returns to `queued`. */
  dispatch: number;
  /** Claims in a row that ended by an expired lease. */
  losses: number;
  /** Retryable failures in a row; omitted if there are none. */
  streak?: FailureStreak;
  /** The time of the first `started`; null before. */
  startedAt: string | null;
}

export interface QueuedRun extends RunBasics {
  status: 'queued';
  /** The reason: the Run is new, the Run before it ended, it was requeued, or its last request was decided. */
  cause: 'new' | 'followed' | 'requeued' | 'resumed';
  /** How long the Run then waits before it is enqueued, milliseconds. */
  delayMs: number;
}

export interface ClaimedRun extends RunBasics {
  status: 'booting' | 'running';
  holder: string;
}

export interface WaitingRun extends RunBasics {
  status: 'waiting_input';
  requests: PermissionRequest[];
}

export interface PermissionRequest {
  requestId: string;
  toolCallId: string;
  decision: PermissionDecision | null;
}

export const initialState: ThreadState = { lifecycle: 'none' };

/** Returns the status of a Thread: the first match of docs/spec/decisions.md#thread-status. */
export function threadStatus(thread: Thread): ThreadStatus {
  if (thread.lifecycle === 'terminated') return 'TERMINATED';
  const current = thread.runs[0];
  if (current === undefined) return 'IDLE';
  const rescheduled = current.status === 'queued' && (current.cause === 'requeued' || current.cause === 'followed');
  return rescheduled ? 'RESCHEDULING' : 'RUNNING';
}

/** Returns the Run with the id, if it is not terminal. */
export function findLiveRun(thread: Thread, runId: string): LiveRun | undefined {
  return thread.runs.find((run) => run.id === runId);
}

/** Returns the field `streak`, or no field if there is no streak. */
export function streakOf({ streak }: { streak?: FailureStreak | undefined }): { streak?: FailureStreak } {
  return streak === undefined ? {} : { streak };
}

/** Returns the id of a step in the public log. It is unique: an attempt has one worker, which takes one step at a time. */
export function stepId(runId: string, attempt: number, step: number): string {
  return `${runId}-${attempt}-${step}`;
}
