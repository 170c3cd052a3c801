import { HarnessError, type TranscriptMessage } from '#agents';
import {
  removeCitations,
  EVENT_TYPES,
  type EventOf,
  type ThreadEventType,
  type TokenUsage,
  type ToolCall,
  type ToolCompleted,
} from '#domain';

/** An event of `ThreadStore.readTranscript`: a message, a decision, a tool event, or the text of a stopped message. */
export type TranscriptEvent = { occurredAt?: string } & (
  | EventOf<'message.added' | 'assistant.message_added' | 'tool.confirmation_decided'>
  | Given<'run.cancelled', { text: string }>
  | Given<'tool.started', Pick<ToolCall, 'toolCallId'>>
  | Given<'tool.completed', Omit<ToolCompleted, 'summary'>>
);

/** An event with only the data that a transcript needs. */
type Given<Type extends ThreadEventType, Data> = Omit<EventOf<Type>, 'data'> & { data: Data };

export interface TranscriptOf {
  runId: string;
  /** When the Run was queued (RFC 3339), if known. Messages sent later belong to Runs behind it, and are left out. */
  queuedAt: string | undefined;
  /** The Runs that have not ended. The messages of Runs queued behind this one are left out. */
  liveRunIds: ReadonlySet<string>;
}

/**
 * Returns the transcript that a Run continues. Messages are stored when they are sent, which may be between an earlier Run's
 * steps (`whenBusy: enqueue`). Here each message precedes the steps of its Run and follows those of earlier Runs, so that
 * nothing comes between a call and its result. Messages of Runs queued behind this one are left out. A Run that retries or resumes
 * another one continues after the last step of that Run, as after a crash. Throws `thread_unreadable` for unknown events,
 * because a Run that ignored them might repeat a tool.
 */
export function transcriptOf(
  events: readonly TranscriptEvent[],
  { runId, queuedAt, liveRunIds }: TranscriptOf,
): TranscriptEvent[] {
  if (!events.every(isReadable)) throw new HarnessError('thread_unreadable');
  const stepped = new Set(events.flatMap((event) => (event.type === 'message.added' ? [] : [event.runId])));
  /** The index of the first event of each Run. */
  const begun = new Map<string | null, number>();
  const ordered: TranscriptEvent[] = [];
  /** Messages whose Run has no step yet, with their indexes. */
  const early = new Map<string | null, { message: TranscriptEvent; place: number }>();
  for (const [place, event] of events.entries()) {
    const { runId: id, type } = event;
    const begunAt = begun.get(id) ?? place;
    begun.set(id, begunAt);
    if (type === 'message.added') {
      const isBehind = liveRunIds.has(id ?? '') || Date.parse(event.occurredAt ?? '') > Date.parse(queuedAt ?? '');
      if (id === runId || !isBehind) early.set(id, { message: event, place });
      continue;
    }
    // Calls belong to the previous message, which may be that of the retried Run.
    const beginsMessage = type === 'assistant.message_added' || type === 'run.cancelled';
    for (const [other, { message, place: sentAt }] of beginsMessage ? early : []) {
      // The Run's own message, and earlier ones that were never answered.
      if (other === id || (other !== runId && !stepped.has(other) && sentAt < begunAt)) {
        ordered.push(message);
        early.delete(other);
      }
    }
    ordered.push(event);
  }
  const own = early.get(runId);
  early.delete(runId);
  return [...ordered, ...[...early.values(), ...(own ? [own] : [])].map(({ message }) => message)];
}

/** Returns whether a stored event has the expected shape. It may be of a newer release, or corrupt. */
function isReadable(event: TranscriptEvent & { schemaVersion?: number }): boolean {
  const { type, schemaVersion = EVENT_TYPES[type].schemaVersion } = event;
  if (schemaVersion !== EVENT_TYPES[type].schemaVersion || !isObject(event.data)) return false;
  switch (type) {
    case 'message.added':
      return areTexts(event.data.text) && areListedTexts(event.data.fileIds);
    case 'assistant.message_added': {
      const { text, toolCalls, usage } = event.data;
      return areTexts(text) && Array.isArray(toolCalls) && toolCalls.every(isToolCall) && isMaybe(usage, isUsage);
    }
    case 'tool.confirmation_decided':
      return areTexts(event.data.toolCallId) && ['allow_once', 'reject_once'].includes(event.data.decision);
    case 'run.cancelled':
      return areTexts(event.data.text);
    case 'tool.started':
      return areTexts(event.data.toolCallId);
    case 'tool.completed': {
      const { toolCallId, toolName, outcome, result, fileIds } = event.data;
      return areTexts(toolCallId, toolName, outcome, result) && isMaybe(fileIds, areListedTexts);
    }
  }
}

function isToolCall(call: unknown): boolean {
  const { toolCallId, toolName, toolInput, invalidInput } = isObject(call) ? (call as Partial<ToolCall>) : {};
  return areTexts(toolCallId, toolName) && isObject(toolInput) && isMaybe(invalidInput, areTexts);
}

function isUsage(usage: unknown): boolean {
  const { inputTokens, outputTokens, cachedInputTokens } = isObject(usage) ? (usage as Partial<TokenUsage>) : {};
  return [inputTokens, outputTokens, cachedInputTokens ?? 0].every(Number.isFinite);
}

/** Returns whether the value is omitted or valid. */
const isMaybe = (value: unknown, is: (value: unknown) => boolean): boolean => value === undefined || is(value);

const areListedTexts = (value: unknown): boolean => Array.isArray(value) && areTexts(...(value as unknown[]));

const areTexts = (...values: unknown[]): boolean => values.every((value) => typeof value === 'string');

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Returns the transcript as messages for a model. A call that an ended Run left open gets a result, because providers reject a
 * conversation with an unanswered call.
 */
export function toMessages(events: readonly TranscriptEvent[]): TranscriptMessage[] {
  const messages: TranscriptMessage[] = [];
  let open = new Map<string, ToolCall>();
  const started = new Set<string>();
  const settle = (): void => {
    for (const { toolCallId, toolName } of open.values()) {
      const outcome = started.has(toolCallId) ? 'unknown' : 'refused';
      messages.push({ role: 'tool', toolCallId, toolName, outcome, result: UNANSWERED[outcome] });
    }
    open = new Map();
  };
  for (const event of events) {
    if (event.type === 'message.added') {
      settle();
      messages.push(messageOf(event, ({ data: { text, fileIds } }) => ({ role: 'user', text, fileIds })));
    } else if (event.type === 'assistant.message_added') {
      settle();
      messages.push(messageOf(event, ({ data }) => ({ role: 'assistant', ...data })));
      open = new Map(event.data.toolCalls.map((call) => [call.toolCallId, call]));
    } else if (event.type === 'run.cancelled') {
      settle();
      messages.push(messageOf(event, stoppedMessage));
    } else if (event.type === 'tool.started') {
      started.add(event.data.toolCallId);
    } else if (event.type === 'tool.completed' && open.delete(event.data.toolCallId)) {
      messages.push(messageOf(event, toolMessage));
    }
  }
  settle();
  // Providers require a message of a person first. It may be among the older events that a transcript lacks.
  if (messages[0]?.role === 'assistant') messages.unshift(LEFT_OUT);
  return messages;
}

const LEFT_OUT: TranscriptMessage = { role: 'user', text: '[Earlier messages are left out.]', fileIds: [] };

const UNANSWERED = {
  unknown: 'The Run ended while this call was under way; it may have taken effect.',
  refused: 'The Run ended before this call; it was not carried out.',
};

type ToolMessage = Extract<TranscriptMessage, { role: 'tool' }>;

const messages = new WeakMap<TranscriptEvent, TranscriptMessage>();

/** Returns always the same message for an event, so a harness can cache the size of a large message. */
function messageOf<Event extends TranscriptEvent>(
  event: Event,
  make: (event: Event) => TranscriptMessage,
): TranscriptMessage {
  const message = messages.get(event) ?? make(event);
  messages.set(event, message);
  return message;
}

/** Returns the visible text of the message that the stop cut. */
function stoppedMessage({ data }: Extract<TranscriptEvent, { type: 'run.cancelled' }>): TranscriptMessage {
  return { role: 'assistant', text: removeCitations(data.text).text, toolCalls: [], stopped: true };
}

function toolMessage({ data }: Extract<TranscriptEvent, { type: 'tool.completed' }>): ToolMessage {
  const { toolCallId, toolName, outcome, result, fileIds } = data;
  return { role: 'tool', toolCallId, toolName, outcome, result, ...(fileIds ? { fileIds } : {}) };
}
