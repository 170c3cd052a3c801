import type { AgentKind, PermissionDecision, RunLimits, RunTrigger, ThreadStatus } from './events.ts';
import type { RunStatus } from './run-transitions.ts';

/**
 * What the decider needs to know of a Thread: the fold of its stream, bounded in size whatever its length, stored beside
 * it as the state row (docs/adr/0004). A command reads this, never the stream.
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
  /** The status that the log last said was entered. */
  status: ThreadStatus;
  /** Runs that are not terminal, oldest first. The first is the current Run; only it can be claimed. */
  runs: LiveRun[];
  /** The newest Run there ever was, which `…/retry` is about, and whether its failure may be retried; null for none. */
  newestRun: { id: string; status: RunStatus; retryable: boolean } | null;
  /**
   * Files that callers attached and no message has mounted yet: the next one does
   * (docs/spec/decisions.md#early-files). Left out where there are none, as in state rows that were written before
   * there were files.
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
  /** Which offer to the queue is the valid one: one higher each time the Run goes back to `queued`. */
  dispatch: number;
  /** Claims in a row that ended by an expired lease or a retryable failure. */
  losses: number;
  /** The time of the first `started`; null before. */
  startedAt: string | null;
}

export interface QueuedRun extends RunBasics {
  status: 'queued';
  /** What it was queued by: itself, the end of the Run before it, a requeue or the last decision. */
  cause: 'new' | 'followed' | 'requeued' | 'resumed';
  /** How long after that it may be offered, milliseconds. */
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

/** The status of a Thread: the first match of docs/spec/decisions.md#thread-status. */
export function threadStatus(thread: Thread): ThreadStatus {
  if (thread.lifecycle === 'terminated') return 'TERMINATED';
  const current = thread.runs[0];
  if (current === undefined) return 'IDLE';
  const rescheduled = current.status === 'queued' && (current.cause === 'requeued' || current.cause === 'followed');
  return rescheduled ? 'RESCHEDULING' : 'RUNNING';
}

/** The Run of the Thread that is not terminal and has the id. */
export function findLiveRun(thread: Thread, runId: string): LiveRun | undefined {
  return thread.runs.find((run) => run.id === runId);
}

/** Returns the id of a step in the public log. It is unique: an attempt has one worker, which takes one step at a time. */
export function stepId(runId: string, attempt: number, step: number): string {
  return `${runId}-${attempt}-${step}`;
}
