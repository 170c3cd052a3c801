import type { EventOf, StoredEvent, ThreadEvent } from './events.ts';
import { nextRunStatus, type RunMove } from './run-transitions.ts';
import { streakOf, type ClaimedRun, type LiveRun, type QueuedRun, type Thread, type ThreadState } from './state.ts';

/** An event and its time (RFC 3339). */
export type DatedEvent = ThreadEvent & Pick<StoredEvent, 'occurredAt'>;

/** Returns the state after the event, or the same object if the event does not apply. Never rejects an event. */
export function evolve(state: ThreadState, event: DatedEvent): ThreadState {
  if (event.type === 'thread.created') return state.lifecycle === 'none' ? created(event) : state;
  if (state.lifecycle === 'none') return state;
  switch (event.type) {
    case 'thread.status_entered':
      return event.data.status === state.status ? state : { ...state, status: event.data.status };
    case 'thread.archived':
      return state.lifecycle === 'active' ? { ...state, lifecycle: 'archived' } : state;
    case 'thread.unarchived':
      return state.lifecycle === 'archived' ? { ...state, lifecycle: 'active' } : state;
    case 'thread.terminated':
      return state.lifecycle === 'terminated' ? state : { ...state, lifecycle: 'terminated' };
    case 'run.queued':
      return queued(state, event);
    case 'run.claimed':
    case 'run.started':
    case 'run.waiting':
    case 'run.resumed':
    case 'run.requeued':
      return moved(state, event);
    case 'run.completed':
    case 'run.failed':
    case 'run.cancelled':
    case 'run.expired':
      return ended(state, event);
    case 'tool.confirmation_decided':
    case 'assistant.message_added':
    case 'tool.completed':
      return progressed(state, event);
    case 'message.added':
      return mounted(state, event);
    case 'files.updated':
      return filesUpdated(state, event);
    case 'thread.title_set':
    case 'tool.confirmation_requested':
    case 'assistant.text_added':
    case 'assistant.thinking_added':
    case 'tool.started':
    case 'usage.recorded':
    case 'file.changed':
      return state;
  }
}

function created({ data }: EventOf<'thread.created'>): Thread {
  const { agentId, organizationId, kind } = data;
  return { lifecycle: 'active', agentId, organizationId, kind, status: 'IDLE', runs: [], newestRun: null };
}

function queued(thread: Thread, { runId, data }: EventOf<'run.queued'>): Thread {
  if (runId === null || thread.runs.some(({ id }) => id === runId)) return thread;
  const { trigger, agentVersion, limits, delayMs } = data;
  const counters = { attempt: 0, dispatch: 1, losses: 0, startedAt: null };
  const run: QueuedRun = {
    id: runId,
    status: 'queued',
    cause: 'new',
    trigger,
    agentVersion,
    limits,
    delayMs,
    ...counters,
  };
  const newestRun = { id: runId, status: 'queued' as const, retryable: false };
  return { ...thread, runs: [...thread.runs, run], newestRun };
}

type Moved = EventOf<'run.claimed' | 'run.started' | 'run.waiting' | 'run.resumed' | 'run.requeued'>;

function moved(thread: Thread, event: Moved & DatedEvent): Thread {
  const run = thread.runs.find(({ id }) => id === event.runId);
  const move = event.type.slice('run.'.length) as RunMove;
  if (run === undefined || nextRunStatus(run.status, move) === null) return thread;
  const after = applyMove(run, event);
  const newest = thread.newestRun;
  const newestRun = newest?.id === run.id ? { ...newest, status: after.status } : newest;
  return replaceRun({ ...thread, newestRun }, after);
}

/** Returns the Run after a move that the transition table allows. Only a claim and a requeue have a streak. */
function applyMove(run: LiveRun, event: Moved & DatedEvent): LiveRun {
  switch (event.type) {
    case 'run.claimed': {
      const { holder } = event.data;
      const claim = { holder, attempt: event.attempt ?? run.attempt, ...streakOf(event.data) };
      return { ...basics(run), ...claim, status: 'booting' };
    }
    case 'run.started':
      return { ...(run as ClaimedRun), status: 'running', startedAt: run.startedAt ?? event.occurredAt };
    case 'run.waiting': {
      const requests = event.data.requests.map((request) => ({ ...request, decision: null }));
      return { ...basics(run), status: 'waiting_input', requests };
    }
    case 'run.resumed':
      return { ...basics(run), status: 'queued', cause: 'resumed', dispatch: event.data.dispatch, delayMs: 0 };
    case 'run.requeued': {
      const { dispatch, losses, delayMs } = event.data;
      const counted = { dispatch, losses, ...streakOf(event.data) };
      return { ...basics(run), ...counted, status: 'queued', cause: 'requeued', delayMs };
    }
  }
}

type Ended = EventOf<'run.completed' | 'run.failed' | 'run.cancelled' | 'run.expired'>;

function ended(thread: Thread, event: Ended): Thread {
  const move = event.type.slice('run.'.length) as RunMove;
  const run = thread.runs.find(({ id }) => id === event.runId);
  const status = run && nextRunStatus(run.status, move);
  if (!run || !status) return thread;
  const retryable = event.type === 'run.failed' && event.data.error.retryable;
  const newestRun = thread.newestRun?.id === run.id ? { ...thread.newestRun, status, retryable } : thread.newestRun;
  const rest = thread.runs.filter(({ id }) => id !== run.id);
  const [next, ...others] = rest;
  // The commit that ends a Run dispatches the next one (docs/spec/decisions.md#when-busy).
  const freed = run === thread.runs[0] && next?.status === 'queued' && next.cause === 'new';
  return { ...thread, newestRun, runs: freed ? [{ ...next, cause: 'followed' }, ...others] : rest };
}

type Progress = EventOf<'tool.confirmation_decided' | 'assistant.message_added' | 'tool.completed'>;

function progressed(thread: Thread, event: Progress): Thread {
  const run = thread.runs.find(({ id }) => id === event.runId);
  if (run === undefined) return thread;
  switch (event.type) {
    case 'assistant.message_added':
    case 'tool.completed':
      // A stored step resets the losses and failures in a row.
      return run.losses === 0 && run.streak === undefined ? thread : replaceRun(thread, withoutLosses(run));
    case 'tool.confirmation_decided': {
      if (run.status !== 'waiting_input') return thread;
      const { requestId, decision } = event.data;
      const decided = run.requests.find((request) => request.requestId === requestId && request.decision === null);
      if (decided === undefined) return thread;
      const requests = run.requests.map((request) => (request === decided ? { ...request, decision } : request));
      return replaceRun(thread, { ...run, requests });
    }
  }
}

/** Removes from `unmounted` only what the message names. A message of the previous release names none. */
function mounted(thread: Thread, { data }: EventOf<'message.added'>): Thread {
  const { unmounted } = thread;
  if (unmounted === undefined) return thread;
  return withUnmounted(
    thread,
    unmounted.filter((id) => !data.fileIds.includes(id)),
  );
}

/** Adds only files of callers. A file that a worker attaches was made by the Run, and needs no message to mount it. */
function filesUpdated(thread: Thread, { data, attempt }: EventOf<'files.updated'>): Thread {
  const { unmounted = [] } = thread;
  const others = unmounted.filter((id) => id !== data.fileId);
  if (data.change === 'attached') return attempt === null ? withUnmounted(thread, [...others, data.fileId]) : thread;
  return others.length === unmounted.length ? thread : withUnmounted(thread, others);
}

function withUnmounted({ unmounted: _, ...thread }: Thread, fileIds: string[]): Thread {
  return fileIds.length === 0 ? thread : { ...thread, unmounted: fileIds };
}

function basics({ id, trigger, agentVersion, limits, attempt, dispatch, losses, startedAt }: LiveRun) {
  return { id, trigger, agentVersion, limits, attempt, dispatch, losses, startedAt };
}

function withoutLosses({ streak: _, ...run }: LiveRun): LiveRun {
  return { ...run, losses: 0 };
}

function replaceRun(thread: Thread, run: LiveRun): Thread {
  return { ...thread, runs: thread.runs.map((other) => (other.id === run.id ? run : other)) };
}
