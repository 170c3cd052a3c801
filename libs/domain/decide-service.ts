import type { ServiceCommand } from './commands.ts';
import { loseClaim } from './decide-worker.ts';
import type { ThreadEvent, TimeLimit } from './events.ts';
import { endRun, threadEvent } from './make-events.ts';
import { reject, type Rejection } from './rejection.ts';
import { findLiveRun, type LiveRun, type ThreadState } from './state.ts';

/** Decides the commands of the background loops and of operators. */
export function decideService(command: ServiceCommand, state: ThreadState, now: string): ThreadEvent[] | Rejection {
  if (state.lifecycle === 'none') return reject('thread_missing');
  if (command.type === 'terminate_thread') {
    if (state.lifecycle === 'terminated') return [];
    const cancelled = state.runs.map((run) => endRun(run, 'run.cancelled', { by: null }, now));
    return [...cancelled, threadEvent('thread.terminated', {})];
  }
  const run = findLiveRun(state, command.runId);
  if (run === undefined) return reject('run_not_live');
  if (command.type === 'reclaim_run') {
    const claimed = run.status === 'booting' || run.status === 'running';
    if (!claimed || run.attempt !== command.attempt) return reject('stale_attempt');
    const { jitter, cause } = command;
    return loseClaim(run, { failure: null, jitter, cause }, 'lease_expired', now);
  }
  // The Run may have moved since the reaper saw that the limit was due. Then the limit no longer applies.
  if (run.dispatch !== command.dispatch || run.attempt !== command.attempt) return reject('stale_attempt');
  if (!LIMITED[command.limit].includes(run.status)) return reject('illegal_transition');
  // The queue limit is on the wait for a worker. A Run behind an earlier one waits for that Run instead.
  if (command.limit === 'queue' && run !== state.runs[0]) return reject('illegal_transition');
  return [endRun(run, 'run.expired', { limit: command.limit }, now)];
}

/** The statuses in which each limit applies. */
const LIMITED: Record<TimeLimit, LiveRun['status'][]> = {
  queue: ['queued'],
  work: ['booting', 'running'],
  wait: ['waiting_input'],
};
