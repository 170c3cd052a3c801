import { BOUNDS } from './bounds.ts';
import type { AddMessage, CallerCommand, CreateThread, NewRun, RetryRun } from './commands.ts';
import type { NamedFile, RunTrigger, ThreadEvent } from './events.ts';
import { endRun, threadEvent } from './make-events.ts';
import { NEWER_RUN, reject, type Rejection } from './rejection.ts';
import { findLiveRun, type LiveRun, type Thread, type ThreadState } from './state.ts';

const MAX_QUEUED_RUNS = BOUNDS.texts.queuedRuns.value;

/** How long the new Run waits for the cancelled one's worker to acknowledge (docs/spec/decisions.md#when-busy). */
const ACKNOWLEDGE_MS = 2_000;

/** Commands that an archived Thread accepts. Files can still be deleted. */
const ALSO_ARCHIVED: readonly string[] = [
  'archive',
  'unarchive',
  'set_title',
  'detach_file',
  'delete_file',
] satisfies CallerCommand['type'][];

/** Decides the commands of callers (docs/spec/agent-threads-api.md#endpoints). */
export function decideCaller(command: CallerCommand, state: ThreadState, now: string): ThreadEvent[] | Rejection {
  if (command.type === 'create_thread') return createThread(command, state);
  if (state.lifecycle === 'none') return reject('thread_missing');
  if (state.lifecycle === 'terminated') return reject('thread_terminated');
  if (state.lifecycle === 'archived' && !ALSO_ARCHIVED.includes(command.type)) return reject('thread_archived');
  switch (command.type) {
    case 'add_message':
      return addMessage(command, state, now);
    case 'decide_permission':
      return decidePermission(command, state);
    case 'interrupt':
      return interrupt(command, state, now);
    case 'retry_run':
      return retryRun(command, state);
    case 'attach_file':
      return [threadEvent('files.updated', { ...namedFile(command), change: 'attached' })];
    case 'detach_file':
      return [threadEvent('files.updated', { ...namedFile(command), change: 'detached' })];
    case 'delete_file':
      return [threadEvent('files.updated', { ...namedFile(command), change: 'deleted' })];
    case 'archive':
      if (state.lifecycle === 'archived') return [];
      return state.runs.length > 0 ? reject('thread_busy') : [threadEvent('thread.archived', {})];
    case 'set_title':
      return [threadEvent('thread.title_set', { title: command.title })];
    case 'unarchive':
      return state.lifecycle === 'archived' ? [threadEvent('thread.unarchived', {})] : [];
  }
}

function createThread(command: CreateThread, state: ThreadState): ThreadEvent[] | Rejection {
  if (state.lifecycle !== 'none') return reject('thread_exists');
  const { agentId, organizationId, kind, userId, owner, clientExternalRef, externalRef } = command;
  const references = {
    ...(clientExternalRef === undefined ? {} : { clientExternalRef }),
    ...(externalRef === undefined ? {} : { externalRef }),
  };
  return [threadEvent('thread.created', { agentId, organizationId, kind, userId, owner, ...references })];
}

function addMessage(command: AddMessage, thread: Thread, now: string): ThreadEvent[] | Rejection {
  const { run, text, requestId, fileIds, fileNames, whenBusy, by } = command;
  const attached = fileIds.map((fileId) => namedFile({ fileId, name: fileNames?.get(fileId), kind: 'attachment' }));
  const [current] = thread.runs;
  if (current !== undefined && whenBusy === 'reject') return reject('thread_busy');
  if (whenBusy === 'enqueue' && thread.runs.length > MAX_QUEUED_RUNS) return reject('too_many_queued_runs');
  if (isKnownRun(thread, run.runId)) return reject('illegal_transition');
  const interrupted = current !== undefined && whenBusy === 'interrupt' ? thread.runs : [];
  return [
    ...interrupted.map((active) => endRun(active, 'run.cancelled', { by }, now)),
    ...attached.map((file) => threadEvent('files.updated', { ...file, change: 'attached' })),
    threadEvent('message.added', { text, requestId, fileIds: [...(thread.unmounted ?? []), ...fileIds] }, run.runId),
    queueRun(run, 'user_prompt', interrupted.some(awaitsAcknowledgement) ? ACKNOWLEDGE_MS : 0),
  ];
}

/** Returns the data of an event about a file, with its name if it is known. */
function namedFile({ fileId, name, kind }: FileCommand): { fileId: string } & NamedFile {
  return { fileId, ...(name === undefined || kind === undefined ? {} : { name, kind }) };
}

interface FileCommand {
  fileId: string;
  name?: string | undefined;
  kind?: NamedFile['kind'] | undefined;
}

/** Returns whether the interrupting Run must wait for a worker: that of this Run, or one for which this Run itself waits. */
function awaitsAcknowledgement(run: LiveRun): boolean {
  if (run.status === 'queued') return run.attempt === 0 && run.delayMs > 0;
  return run.status === 'booting' || run.status === 'running';
}

/** Returns whether a Run id is already used. The state lacks older Runs, but ULIDs do not collide in practice. */
function isKnownRun(thread: Thread, runId: string): boolean {
  return thread.newestRun?.id === runId || findLiveRun(thread, runId) !== undefined;
}

function queueRun({ runId, agentVersion, limits }: NewRun, trigger: RunTrigger, delayMs: number): ThreadEvent {
  return threadEvent('run.queued', { trigger, agentVersion, limits, delayMs }, runId);
}

type DecidePermission = Extract<CallerCommand, { type: 'decide_permission' }>;

function decidePermission(command: DecidePermission, thread: Thread): ThreadEvent[] | Rejection {
  const { requestId, decision, by } = command;
  for (const run of thread.runs) {
    if (run.status !== 'waiting_input') continue;
    const open = run.requests.filter((request) => request.decision === null);
    const request = open.find((candidate) => candidate.requestId === requestId);
    if (request === undefined) continue;
    const { toolCallId } = request;
    const decided = threadEvent('tool.confirmation_decided', { requestId, toolCallId, decision, by }, run.id);
    // The commit that decides the last open request resumes the Run; until then it stays waiting.
    if (open.length > 1) return [decided];
    return [decided, threadEvent('run.resumed', { dispatch: run.dispatch + 1 }, run.id)];
  }
  return { ...reject('request_not_pending'), requestId };
}

type Interrupt = Extract<CallerCommand, { type: 'interrupt' }>;

function interrupt({ runId, by }: Interrupt, thread: Thread, now: string): ThreadEvent[] | Rejection {
  const run = runId === null ? thread.runs[0] : findLiveRun(thread, runId);
  if (run === undefined) return reject(runId === null ? 'no_active_run' : 'run_not_live');
  return [endRun(run, 'run.cancelled', { by }, now)];
}

function retryRun({ runId, run, isRepaired = false }: RetryRun, thread: Thread): ThreadEvent[] | Rejection {
  const newest = thread.newestRun;
  if (newest?.id !== runId) return reject('run_not_retryable', newest === null ? undefined : NEWER_RUN);
  const trigger = retryTrigger({ ...newest, retryable: newest.retryable || isRepaired });
  if (trigger === null) return reject('run_not_retryable', NOT_RETRYABLE[newest.status] ?? 'It has not ended.');
  // An earlier Run has not ended, so there is no settled state to continue from.
  if (thread.runs.length > 0) return reject('thread_busy');
  if (isKnownRun(thread, run.runId)) return reject('illegal_transition');
  return [queueRun(run, trigger, 0)];
}

/** Why the newest Run cannot be retried, by its status. With any other status, it has not ended. */
const NOT_RETRYABLE: Record<string, string> = {
  completed: 'It is completed.',
  failed: 'Its error is not retryable.',
};

/** Returns the trigger of the Run that continues the newest one, or null if that one cannot be retried. */
function retryTrigger({ status, retryable }: NonNullable<Thread['newestRun']>): RunTrigger | null {
  if (status === 'failed') return retryable ? 'retry' : null;
  return status === 'cancelled' || status === 'expired' ? 'resume' : null;
}
