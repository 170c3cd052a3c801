import type { Command } from './commands.ts';
import { decideCaller } from './decide-caller.ts';
import { decideService } from './decide-service.ts';
import { decideWorker } from './decide-worker.ts';
import type { EventOf, ThreadEvent } from './events.ts';
import { evolve, type DatedEvent } from './evolve.ts';
import { isRejection, type Rejection } from './rejection.ts';
import { stepId, threadStatus, type ThreadState } from './state.ts';

export interface Decision {
  events: DatedEvent[];
  state: ThreadState;
  /** One for each command, in order. */
  outcomes: CommandOutcome[];
}

/** The effect of one command. */
export interface CommandOutcome {
  /** The Run that the command created, changed or named; null for none. */
  runId: string | null;
  /** How many Runs the enqueued message waits for; 0 for other commands. */
  waitsBehind: number;
  /** Whether it interrupts a Run that had already ended. Such a command has no effect. */
  hadEnded: boolean;
}

const NO_RUNS: { has: (runId: string) => boolean } = { has: () => false };

/**
 * Decides the commands in order, all or none. Returns the events and the state after them, or the first rejection. No events
 * means that there was nothing to do. `now` is RFC 3339 with milliseconds and not before the Thread's last event.
 *
 * An interrupt of a Run that has ended is rejected, unless the caller knows that the Run is one of the Thread: it is in
 * `endedRuns`, or it was live before these commands (docs/spec/decisions.md#ended-runs).
 */
export function decide(
  commands: readonly Command[],
  state: ThreadState,
  now: string,
  endedRuns = NO_RUNS,
): Decision | Rejection {
  const decision: Decision = { events: [], state, outcomes: [] };
  const isKnown = (runId: string): boolean =>
    endedRuns.has(runId) || (state.lifecycle !== 'none' && state.runs.some(({ id }) => id === runId));
  for (const command of commands) {
    const before = decision.state;
    const events = decideOne(command, before, now);
    if (isRejection(events)) {
      const named = command.type === 'interrupt' && events.rejected === 'run_not_live' ? command.runId : null;
      if (named === null || !isKnown(named)) return events;
      decision.outcomes.push({ runId: named, waitsBehind: 0, hadEnded: true });
      continue;
    }
    for (const event of events) add(decision, event, now);
    enterStatus(decision, events, { ...voidedStep(command, events), ...retryTime(events, now) }, now);
    const runId = events.findLast((event) => event.runId !== null)?.runId ?? null;
    decision.outcomes.push({ runId, waitsBehind: runsAhead(command, before), hadEnded: false });
  }
  return decision;
}

function runsAhead(command: Command, state: ThreadState): number {
  const isEnqueued = command.type === 'add_message' && command.whenBusy === 'enqueue';
  return isEnqueued && state.lifecycle !== 'none' ? state.runs.length : 0;
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

/** Adds an event for the log if the command changed the status of the Thread (docs/spec/decisions.md#log). */
function enterStatus(decision: Decision, events: ThreadEvent[], more: StatusDetails, now: string): void {
  const { state } = decision;
  if (state.lifecycle === 'none') return;
  const status = threadStatus(state);
  if (status === state.status) return;
  // The Runs that end with a Thread do not cause its end.
  const cause = status === 'TERMINATED' ? undefined : events.findLast((event) => event.runId !== null);
  const runId = cause?.runId ?? null;
  add(decision, { type: 'thread.status_entered', data: { status, ...more }, runId, attempt: null }, now);
}

type StatusDetails = Omit<EventOf<'thread.status_entered'>['data'], 'status'>;

/** Returns when a requeued Run is tried again, unless that is immediately. */
function retryTime(events: ThreadEvent[], now: string): StatusDetails {
  const requeued = events.find((event) => event.type === 'run.requeued');
  if (requeued === undefined || requeued.data.delayMs === 0) return {};
  return { retryAt: new Date(Date.parse(now) + requeued.data.delayMs).toISOString() };
}

/** Returns the model step that a requeue interrupts and that runs again. */
function voidedStep(command: Command, events: ThreadEvent[]): StatusDetails {
  if (!('openStep' in command) || command.openStep === undefined) return {};
  if (!events.some(({ type }) => type === 'run.requeued')) return {};
  return { voidedStepId: stepId(command.runId, command.attempt, command.openStep) };
}

function add(decision: Decision, event: ThreadEvent, now: string): void {
  // All events have one object shape. With a copy (`…event`) here and in event-store, an append took 1.4 times as long.
  const { type, data, runId, attempt } = event;
  const happened = { type, data, runId, attempt, occurredAt: now } as DatedEvent;
  decision.events.push(happened);
  decision.state = evolve(decision.state, happened);
}
