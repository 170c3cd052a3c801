import type { WorkerCommand } from './commands.ts';
import type { EventOf, RequeueReason, ThreadEvent } from './events.ts';
import type { FailureCause } from './failure-cause.ts';
import { endRun, workerEvent } from './make-events.ts';
import { reject, type Rejection } from './rejection.ts';
import { decideRetry, type EndedClaim } from './retry-policy.ts';
import { findLiveRun, streakOf, type ClaimedRun, type LiveRun, type ThreadState } from './state.ts';

/** Decides the commands of workers: claims, and the commands of their holders. Rejects all commands of an old attempt. */
export function decideWorker(command: WorkerCommand, state: ThreadState, now: string): ThreadEvent[] | Rejection {
  if (state.lifecycle === 'none') return reject('thread_missing');
  if (command.type === 'claim_run') return claimRun(command, state.runs[0]);
  const run = findLiveRun(state, command.runId);
  if (run === undefined || run.attempt !== command.attempt || !isClaimed(run)) return reject('stale_attempt');
  if (command.type === 'start_run') {
    if (run.status !== 'booting') return reject('illegal_transition');
    return [workerEvent('run.started', { first: run.startedAt === null }, command)];
  }
  if (command.type === 'fail_run') {
    const { error, jitter, retryAfterMs = 0, turn, cause } = command;
    return loseClaim(run, { failure: error, jitter, retryAfterMs, turn, cause }, 'retryable_failure', now);
  }
  if (command.type === 'hand_over_run')
    return [
      requeue(run, { reason: 'handed_over', losses: run.losses, delayMs: command.delayMs ?? 0, ...streakOf(run) }),
    ];
  if (run.status !== 'running') return reject('illegal_transition');
  switch (command.type) {
    case 'record':
      return command.facts.map(({ type, data }) => workerEvent(type, data, command));
    case 'wait_for_decisions':
      // The Run would wait forever without an open request, or with one that a decision cannot name.
      if (!areDistinct(command.requests.map(({ requestId }) => requestId))) return reject('illegal_transition');
      return [workerEvent('run.waiting', { requests: command.requests }, command)];
    case 'complete_run':
      return [endRun(run, 'run.completed', { finalOutput: command.finalOutput }, now, command.attempt)];
  }
}

function isClaimed(run: LiveRun): run is ClaimedRun {
  return run.status === 'booting' || run.status === 'running';
}

/** Returns whether there are ids and no two of them are equal. */
function areDistinct(ids: string[]): boolean {
  return ids.length > 0 && new Set(ids).size === ids.length;
}

type ClaimRun = Extract<WorkerCommand, { type: 'claim_run' }>;

/** Claims the current Run while it is queued under the dispatch that the job names (docs/spec/decisions.md#claims). */
function claimRun({ runId, dispatch, holder }: ClaimRun, current: LiveRun | undefined): ThreadEvent[] | Rejection {
  const claimable = current?.id === runId && current.status === 'queued' && current.dispatch === dispatch;
  if (!claimable) return reject('stale_dispatch');
  // The claim repeats the streak, because a release that does not know it drops it from the state when it claims the Run.
  const claim = { dispatch, holder, ...streakOf(current) };
  return [workerEvent('run.claimed', claim, { runId, attempt: current.attempt + 1 })];
}

type EndOfClaim = Pick<EndedClaim, 'failure' | 'jitter' | 'retryAfterMs' | 'turn'> & {
  cause?: FailureCause | undefined;
};

/** Ends a claim after an expired lease or a failure. The retry policy decides whether the Run is requeued or fails. */
export function loseClaim(
  run: ClaimedRun,
  { cause, ...ended }: EndOfClaim,
  reason: RequeueReason,
  now: string,
): ThreadEvent[] {
  const { losses, streak, limits } = run;
  const decided = decideRetry({ ...ended, losses, streak, limits, now });
  const caused = cause === undefined ? {} : { cause };
  if (decided.kind === 'fail')
    return [endRun(run, 'run.failed', { error: decided.error, ...caused }, now, run.attempt)];
  return [requeue(run, { reason, losses: decided.losses, delayMs: decided.delayMs, ...caused, ...streakOf(decided) })];
}

function requeue(run: ClaimedRun, data: Omit<EventOf<'run.requeued'>['data'], 'dispatch'>): ThreadEvent {
  const claim = { runId: run.id, attempt: run.attempt };
  return workerEvent('run.requeued', { dispatch: run.dispatch + 1, ...data }, claim);
}
