import type { Command } from './commands.ts';
import { decideCaller } from './decide-caller.ts';
import { decideService } from './decide-service.ts';
import { decideWorker } from './decide-worker.ts';
import type { ThreadEvent } from './events.ts';
import { evolve, type Happened } from './evolve.ts';
import { isRejection, type Rejection } from './rejection.ts';
import { stepId, threadStatus, type ThreadState } from './state.ts';

export interface Decision {
  events: Happened[];
  state: ThreadState;
}

/**
 * What the commands do, in order and all or none: the events and the state after them, or the first refusal. No events
 * means that there was nothing to do. `now` is RFC 3339 with milliseconds and not before the Thread's last event.
 */
export function decide(commands: readonly Command[], state: ThreadState, now: string): Decision | Rejection {
  const decision: Decision = { events: [], state };
  for (const command of commands) {
    const before = decision.state;
    const events = decideOne(command, before, now);
    if (isRejection(events)) return events;
    for (const event of events) add(decision, event, now);
    enterStatus(decision, events, voidedStep(command, events), now);
  }
  return decision;
}

function decideOne(command: Command, state: ThreadState, now: string): ThreadEvent[] | Rejection {
  switch (command.type) {
    case 'claim_run':
    case 'start_run':
    case 'record':
    case 'wait_for_decisions':
    case 'complete_run':
    case 'fail_run':
    case 'hand_over_run':
      return decideWorker(command, state, now);
    case 'reclaim_run':
    case 'expire_run':
    case 'terminate_thread':
      return decideService(command, state, now);
    default:
      return decideCaller(command, state, now);
  }
}

/** Whatever the command was: where it changed the Thread's status, the log says so (docs/spec/decisions.md#log). */
function enterStatus(decision: Decision, events: ThreadEvent[], voided: { voidedStepId?: string }, now: string): void {
  const { state } = decision;
  if (state.lifecycle === 'none') return;
  const status = threadStatus(state);
  if (status === state.status) return;
  // The Runs that end with a Thread do not cause its end.
  const cause = status === 'TERMINATED' ? undefined : events.findLast((event) => event.runId !== null);
  const runId = cause?.runId ?? null;
  add(decision, { type: 'thread.status_entered', data: { status, ...voided }, runId, attempt: null }, now);
}

/** Returns the model step that a requeue interrupts and that runs again. */
function voidedStep(command: Command, events: ThreadEvent[]): { voidedStepId?: string } {
  if (!('openStep' in command) || command.openStep === undefined) return {};
  if (!events.some(({ type }) => type === 'run.requeued')) return {};
  return { voidedStepId: stepId(command.runId, command.attempt, command.openStep) };
}

function add(decision: Decision, event: ThreadEvent, now: string): void {
  // Of one shape whatever the event: with a copy (`…event`) here and in event-store a whole append took 1.4 times as long.
  const { type, data, runId, attempt } = event;
  const happened = { type, data, runId, attempt, occurredAt: now } as Happened;
  decision.events.push(happened);
  decision.state = evolve(decision.state, happened);
}
