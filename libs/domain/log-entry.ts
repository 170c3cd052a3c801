import { removeCitations } from './citations.ts';
import { isKnownEvent, type LogEntryType } from './event-types.ts';
import type {
  EventOf,
  NamedFile,
  PermissionDecision,
  StoredEvent,
  ThreadEvent,
  ToolCall,
  UnknownEvent,
} from './events.ts';
import type { RunError } from './run-errors.ts';
import { stepId } from './state.ts';

/** One entry of a Thread's public event log (docs/spec/agent-threads-api.md#log-entry). */
export interface LogEntry {
  id: string;
  type: LogEntryType;
  occurredAt: string;
  runId: string | null;
  status: 'available' | 'error' | 'unsupported';
  content: string;
  durationMs: number | null;
  tokens: number | null;
  toolCallId?: string;
  toolName?: string;
  toolInput?: Record<string, unknown>;
}

/** An entry with the optional fields of `?extended=true`. Each field is in the entries of some types. */
export interface ExtendedLogEntry extends LogEntry {
  /** `tool.confirmation.required`: the tool's title. */
  title?: string;
  /** `file.changed`, `session_files.updated`: the file's name and kind at that time, and what happened to it. */
  name?: string;
  kind?: 'attachment' | 'artifact';
  action?: FileAction;
  /** `agent.message.delta`, `agent.thinking.delta`: the message that the text belongs to, and the step that wrote it. */
  messageId?: string;
  stepId?: string;
  /** `session.status`: the step that was interrupted; its text is void. */
  voidedStepId?: string;
  /** `session.status` with the content `RESCHEDULING`: when the Run is tried again; absent if that is immediately. */
  retryAt?: string;
  /** `user.message`: the files that were sent with it. */
  fileIds?: string[];
  /** `run.failed`: the error of a failed Run; absent if the Run was cancelled or expired. */
  error?: Pick<RunError, 'code' | 'retryable'>;
  /** `session.status` with the content `decided`: the confirmation request, and the decision that counts. */
  requestId?: string;
  decision?: PermissionDecision;
}

export type FileAction = (typeof FILE_ACTIONS)[number];
export const FILE_ACTIONS = ['created', 'changed', 'attached', 'detached', 'deleted'] as const;

const NO_NUMBERS = { durationMs: null, tokens: null };

type Shown = Pick<LogEntry, 'type' | 'content'> & Partial<LogEntry>;

/**
 * Returns the entry of an event in the public log, or null if it has none. Each event has at most one entry. The cases are the
 * rows of the table in docs/spec/decisions.md#log.
 */
export function showEvent(event: ThreadEvent): Shown | null {
  switch (event.type) {
    case 'message.added':
      return { type: 'user.message', content: event.data.text };
    case 'assistant.text_added':
      return { type: 'agent.message.delta', content: event.data.text };
    case 'assistant.thinking_added':
      return { type: 'agent.thinking.delta', content: event.data.text };
    case 'tool.started':
      return { type: 'tool.use.started', content: event.data.title, ...correlation(event.data) };
    case 'tool.confirmation_requested':
      return { type: 'tool.confirmation.required', content: event.data.requestId, ...correlation(event.data) };
    case 'tool.completed': {
      const { toolCallId, toolName, summary, durationMs, outcome } = event.data;
      const status = outcome === 'ok' ? 'available' : 'error';
      return { type: 'tool.use.completed', content: summary, toolCallId, toolName, durationMs, status };
    }
    case 'file.changed':
      return { type: 'file.changed', content: event.data.fileId };
    case 'files.updated':
      return { type: 'session_files.updated', content: event.data.fileId };
    case 'thread.status_entered':
      return { type: 'session.status', content: event.data.status };
    case 'thread.archived':
      return { type: 'session.status', content: 'archived' };
    case 'thread.unarchived':
      return { type: 'session.status', content: 'unarchived' };
    case 'usage.recorded': {
      const { inputTokens, outputTokens } = event.data;
      const content = JSON.stringify({ inputTokens, outputTokens });
      return { type: 'usage.updated', content, tokens: inputTokens + outputTokens };
    }
    case 'run.started':
      return event.data.first ? { type: 'run.started', content: event.runId ?? '' } : null;
    case 'run.completed':
      return { type: 'run.completed', content: event.runId ?? '', durationMs: event.data.durationMs };
    case 'run.failed':
      return ended(event.data.error.message, event.data.durationMs);
    case 'run.cancelled':
      return ended('cancelled', event.data.durationMs);
    case 'run.expired':
      return ended('expired', event.data.durationMs);
    case 'thread.created':
    case 'thread.terminated':
    case 'thread.title_set':
    case 'run.queued':
    case 'run.claimed':
    case 'run.waiting':
    case 'run.resumed':
    case 'run.requeued':
    case 'assistant.message_added':
    case 'tool.confirmation_decided':
      return null;
  }
}

function correlation({ toolCallId, toolName, toolInput }: ToolCall): Partial<LogEntry> {
  return { toolCallId, toolName, toolInput };
}

function ended(content: string, durationMs: number | null): Shown {
  return { type: 'run.failed', content, durationMs, status: 'error' };
}

/**
 * Returns the entry of a stored event, or null if it has none. A public event of an unknown type or of a wrong shape becomes
 * `unsupported`, so that reads never fail on it.
 */
export function toLogEntry(event: StoredEvent | UnknownEvent): LogEntry | null {
  if (!event.public) return null;
  const { id, occurredAt, runId } = event;
  const place = { id, occurredAt, runId, status: 'available' as const, ...NO_NUMBERS };
  const shown = isKnownEvent(event) ? showUnlessBroken(event) : 'unsupported';
  // An unknown type has no name in the closed enum of the contract. `session.status` promises the least.
  if (shown === 'unsupported') return { ...place, type: 'session.status', status: 'unsupported', content: '' };
  return shown && { ...place, ...shown, content: removeCitations(shown.content).text };
}

/**
 * Returns the entry with its optional fields. Uses only the event, so the entry never changes, even when a file does. Only
 * extended logs have entries of decisions. Their events are stored as not public, so that plain logs do not change.
 */
export function toExtendedLogEntry(event: StoredEvent | UnknownEvent): ExtendedLogEntry | null {
  if (!event.public && isKnownEvent(event) && event.type === 'tool.confirmation_decided') return decisionEntry(event);
  const entry = toLogEntry(event);
  if (entry === null || entry.status === 'unsupported' || !isKnownEvent(event)) return entry;
  return { ...entry, ...fieldsBesides(event) };
}

/** Returns the entry of a decision, or null if the stored data is malformed. */
function decisionEntry(event: StoredEvent & EventOf<'tool.confirmation_decided'>): ExtendedLogEntry | null {
  const { id, occurredAt, runId } = event;
  const { requestId, toolCallId, decision } = (event.data ?? {}) as Partial<typeof event.data>;
  if (typeof requestId !== 'string' || typeof toolCallId !== 'string') return null;
  if (decision !== 'allow_once' && decision !== 'reject_once') return null;
  const place = { id, occurredAt, runId, status: 'available' as const, ...NO_NUMBERS };
  return { ...place, type: 'session.status', content: 'decided', toolCallId, requestId, decision };
}

type Besides = Omit<ExtendedLogEntry, keyof LogEntry>;

/** Returns the optional fields. Omits malformed ones; events of earlier releases lack most of them. */
function fieldsBesides(event: ThreadEvent): Besides {
  switch (event.type) {
    case 'assistant.text_added':
    case 'assistant.thinking_added':
      return stepOf(event);
    case 'tool.confirmation_requested':
      return textsOf({ title: event.data.title });
    case 'file.changed':
      return fileOf(event.data, event.data.action);
    case 'files.updated':
      return fileOf(event.data, event.data.change);
    case 'thread.status_entered':
      return textsOf({ voidedStepId: event.data.voidedStepId, retryAt: event.data.retryAt });
    case 'message.added':
      return filesOf(event.data.fileIds);
    case 'run.failed':
      return errorOf(event.data.error);
    default:
      return {};
  }
}

/** Returns the ids of message and step. They are equal, because a step writes one message. */
function stepOf({ runId, attempt, data }: EventOf<'assistant.text_added' | 'assistant.thinking_added'>): Besides {
  if (runId === null || attempt === null || !Number.isSafeInteger(data.step)) return {};
  const id = stepId(runId, attempt, data.step ?? 0);
  return { messageId: id, stepId: id };
}

function filesOf(fileIds: unknown): Besides {
  return Array.isArray(fileIds) && fileIds.every((id) => typeof id === 'string') ? { fileIds } : {};
}

function errorOf({ code, retryable }: RunError): Besides {
  return typeof code === 'string' && typeof retryable === 'boolean' ? { error: { code, retryable } } : {};
}

function fileOf({ name, kind }: NamedFile, action: FileAction | undefined): Besides {
  return {
    ...textsOf({ name }),
    ...(kind === 'attachment' || kind === 'artifact' ? { kind } : {}),
    ...(action !== undefined && FILE_ACTIONS.includes(action) ? { action } : {}),
  };
}

function textsOf<Name extends string>(fields: Record<Name, unknown>): { [field in Name]?: string } {
  const texts = Object.entries(fields).filter((field): field is [Name, string] => typeof field[1] === 'string');
  return Object.fromEntries(texts.map(([name, text]) => [name, removeCitations(text).text])) as Record<Name, string>;
}

function showUnlessBroken(event: ThreadEvent): Shown | null | 'unsupported' {
  try {
    const shown = showEvent(event);
    return shown === null || isWhole(shown) ? shown : 'unsupported';
  } catch {
    return 'unsupported';
  }
}

/** Returns whether every field fits the contract. Stored data may lack some. */
function isWhole(shown: Shown): boolean {
  const { type, content, durationMs, tokens, toolCallId, toolName, toolInput = {} } = { ...NO_NUMBERS, ...shown };
  const areCounts = [durationMs, tokens].every((value) => value === null || Number.isSafeInteger(value));
  if (typeof content !== 'string' || !areCounts) return false;
  if (!type.startsWith('tool.')) return true;
  const isObject = typeof toolInput === 'object' && toolInput !== null && !Array.isArray(toolInput);
  return isObject && [toolCallId, toolName].every((name) => typeof name === 'string' && name !== '');
}
