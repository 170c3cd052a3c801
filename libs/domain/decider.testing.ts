import type { AddMessage, Command, NewRun } from './commands.ts';
import { decide, type Decision } from './decide.ts';
import type { EventOf, ExternalRef, RunLimits, ThreadEvent, ThreadEventType } from './events.ts';
import { evolve } from './evolve.ts';
import { isRejection, type Rejection, type RejectionCode } from './rejection.ts';
import { initialState, type Thread, type ThreadState } from './state.ts';

/** For specs: given events, when commands, then events. Given events happened at THEN, decisions happen at NOW. */
export const THEN = '2026-01-01T00:00:00.000Z';
export const NOW = '2026-01-01T00:01:00.000Z';

export function given(...events: ThreadEvent[]) {
  const state = stateAfter(events);
  return { when: (...commands: Command[]) => when(state, commands) };
}

export function stateAfter(events: readonly ThreadEvent[], from = initialState, occurredAt = THEN): ThreadState {
  return events.reduce<ThreadState>((state, event) => evolve(state, { ...event, occurredAt }), from);
}

export function threadAfter(...events: ThreadEvent[]): Thread {
  const state = stateAfter(events);
  if (state.lifecycle === 'none') throw new Error('there is no Thread yet');
  return state;
}

function when(state: ThreadState, commands: Command[]) {
  const decision = decide(commands, state, NOW);
  return {
    then(...expected: ThreadEvent[]): void {
      expect(withoutTimes(accepted(decision))).toEqual(expected);
    },
    thenNothing(): void {
      expect(accepted(decision).events).toEqual([]);
      expect(accepted(decision).state).toBe(state);
    },
    thenRejected(code: RejectionCode, message?: string): void {
      expect(decision).toMatchObject({ rejected: code, ...(message === undefined ? {} : { message }) });
    },
    /** Returns one line: `!code` for a rejection, `.` for no events, else the events, such as `cancelled IDLE`. */
    outcome: () => outcomeOf(decision),
    decision: () => accepted(decision),
  };
}

function accepted(decision: Decision | Rejection): Decision {
  if (isRejection(decision)) throw new Error(`refused: ${decision.rejected}`);
  return decision;
}

function withoutTimes({ events }: Decision): ThreadEvent[] {
  return events.map(({ type, data, runId, attempt }) => ({ type, data, runId, attempt }) as ThreadEvent);
}

function outcomeOf(decision: Decision | Rejection): string {
  if (isRejection(decision)) return `!${decision.rejected}`;
  const words = decision.events.map((event) =>
    event.type === 'thread.status_entered' ? event.data.status : event.type.replace(/^(run|thread)\./, ''),
  );
  return words.join(' ') || '.';
}

/** Returns an event of any type, typed by its name. */
export function event<Type extends ThreadEventType>(
  type: Type,
  data: EventOf<Type>['data'],
  runId: string | null = null,
  attempt: number | null = null,
): ThreadEvent {
  return { type, data, runId, attempt } as ThreadEvent;
}

/** Different limits, so that a test shows which one was used. */
export const LIMITS: RunLimits = { queueMs: 1_000_000, workMs: 2_000_000, waitMs: 3_000_000, maxLosses: 3 };

export const newRun = (runId: string): NewRun => ({ runId, agentVersion: 7, limits: LIMITS });

/** Events as the decider writes them. Parameters are the fields that matter to tests. */
export const happened = {
  created: () => event('thread.created', CREATED),
  entered: (status: Thread['status'], runId: string | null = null) => event('thread.status_entered', { status }, runId),
  archived: () => event('thread.archived', {}),
  titleSet: (title: string | null) => event('thread.title_set', { title }),
  unarchived: () => event('thread.unarchived', {}),
  terminated: () => event('thread.terminated', {}),
  message: (runId: string, text = 'hi') => event('message.added', { text, requestId: null, fileIds: [] }, runId),
  queued: (runId: string, more: Partial<EventOf<'run.queued'>['data']> = {}) =>
    event('run.queued', { trigger: 'user_prompt', agentVersion: 7, limits: LIMITS, delayMs: 0, ...more }, runId),
  claimed: (runId: string, attempt = 1, dispatch = attempt) =>
    event('run.claimed', { dispatch, holder: 'worker' }, runId, attempt),
  started: (runId: string, attempt = 1) => event('run.started', { first: attempt === 1 }, runId, attempt),
  waiting: (runId: string, requestIds: string[], attempt = 1) =>
    event('run.waiting', { requests: requestIds.map(toRequest) }, runId, attempt),
  decided: (runId: string, requestId: string, decision: 'allow_once' | 'reject_once' = 'allow_once') =>
    event('tool.confirmation_decided', { ...toRequest(requestId), decision, by: 'ann' }, runId),
  resumed: (runId: string, dispatch = 2) => event('run.resumed', { dispatch }, runId),
  requeued: (runId: string, more: Partial<EventOf<'run.requeued'>['data']> = {}, attempt = 1) => {
    const data = { dispatch: 2, reason: 'lease_expired' as const, losses: 1, delayMs: 0, ...more };
    return event('run.requeued', data, runId, attempt);
  },
  completed: (runId: string, durationMs: number | null = null, attempt = 1) =>
    event('run.completed', { finalOutput: null, durationMs }, runId, attempt),
  failed: (
    runId: string,
    error: EventOf<'run.failed'>['data']['error'],
    durationMs: number | null = null,
    attempt = 1,
  ) => event('run.failed', { error, durationMs }, runId, attempt),
  cancelled: (runId: string, by: string | null = 'ann', durationMs: number | null = null) =>
    event('run.cancelled', { by, durationMs }, runId),
  expired: (runId: string, limit: 'queue' | 'work' | 'wait', durationMs: number | null = null) =>
    event('run.expired', { limit, durationMs }, runId),
  said: (runId: string, attempt = 1) => event('assistant.message_added', { text: 'ho', toolCalls: [] }, runId, attempt),
};

const CREATED: EventOf<'thread.created'>['data'] = {
  agentId: 'AGENT',
  organizationId: 'ORGANIZATION',
  kind: 'cattle',
  userId: 'user',
  owner: { personId: 'ann', serviceTokenId: null },
};

function toRequest(requestId: string) {
  return { requestId, toolCallId: `call of ${requestId}` };
}

/** Commands with usual fields. A test passes the fields that it is about. */
export const command = {
  create: (more: { clientExternalRef?: string; externalRef?: ExternalRef } = {}): Command => ({
    type: 'create_thread',
    ...CREATED,
    ...more,
  }),
  message: (runId: string, whenBusy: AddMessage['whenBusy'] = 'reject'): AddMessage => {
    return { type: 'add_message', text: 'hi', requestId: null, fileIds: [], run: newRun(runId), whenBusy, by: 'ann' };
  },
  setTitle: (title: string | null): Command => ({ type: 'set_title', title }),
  decide: (requestId: string, decision: 'allow_once' | 'reject_once' = 'allow_once'): Command => {
    return { type: 'decide_permission', requestId, decision, by: 'ann' };
  },
  interrupt: (runId: string | null = null): Command => ({ type: 'interrupt', runId, by: 'ann' }),
  retry: (runId: string, newRunId: string): Command => ({ type: 'retry_run', runId, run: newRun(newRunId) }),
  claim: (runId: string, dispatch = 1): Command => ({ type: 'claim_run', runId, dispatch, holder: 'worker' }),
  start: (runId: string, attempt = 1): Command => ({ type: 'start_run', runId, attempt }),
  say: (runId: string, attempt = 1): Command => {
    const facts = [{ type: 'assistant.message_added' as const, data: { text: 'ho', toolCalls: [] } }];
    return { type: 'record', runId, attempt, facts };
  },
  wait: (runId: string, requestIds: string[], attempt = 1): Command => {
    return { type: 'wait_for_decisions', runId, attempt, requests: requestIds.map(toRequest) };
  },
  complete: (runId: string, attempt = 1): Command => ({ type: 'complete_run', runId, attempt, finalOutput: null }),
  fail: (runId: string, error: EventOf<'run.failed'>['data']['error'], attempt = 1): Command => {
    return { type: 'fail_run', runId, attempt, error, jitter: 1 };
  },
  handOver: (runId: string, attempt = 1, more: { delayMs?: number } = {}): Command => ({
    ...{ type: 'hand_over_run', runId, attempt },
    ...more,
  }),
  reclaim: (runId: string, attempt = 1): Command => ({ type: 'reclaim_run', runId, attempt, jitter: 1 }),
  expire: (runId: string, limit: 'queue' | 'work' | 'wait', { dispatch = 1, attempt = 1 } = {}): Command => {
    return { type: 'expire_run', runId, limit, dispatch, attempt };
  },
  terminate: (): Command => ({ type: 'terminate_thread' }),
};
