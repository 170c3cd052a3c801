import type { TranscriptMessage } from '#agents';
import type { RunTrigger, ThreadEvent, ToolCall } from '#domain';

/** What `read-transcript.sql` reads: messages, decisions and tool calls of a whole Thread. */
export type TranscriptEvent = Extract<
  ThreadEvent,
  {
    type: 'message.added' | 'assistant.message_added' | 'tool.confirmation_decided' | 'tool.started' | 'tool.completed';
  }
>;

export interface TranscriptOf {
  runId: string;
  trigger: RunTrigger;
  /** The Runs that have not ended; those behind this one are not its business. */
  liveRunIds: ReadonlySet<string>;
}

/**
 * The transcript that a Run goes on from. Messages stand in the stream where they were sent, which may be amid an earlier
 * Run's steps (`whenBusy: enqueue`); here each stands before the steps of its own Run, and those of Runs still queued are
 * left out. Only a `retry` answers its message anew: what came after that message is dropped.
 */
export function transcriptOf(
  events: readonly TranscriptEvent[],
  { runId, trigger, liveRunIds }: TranscriptOf,
): TranscriptEvent[] {
  const stepped = new Set(events.flatMap((event) => (event.type === 'message.added' ? [] : [event.runId])));
  const ordered: TranscriptEvent[] = [];
  /** Messages whose Run has not stepped yet. */
  const early = new Map<string | null, TranscriptEvent>();
  for (const event of events) {
    if (event.type === 'message.added') {
      const behind = event.runId !== runId && liveRunIds.has(event.runId ?? '');
      if (!behind) early.set(event.runId, event);
      continue;
    }
    for (const [id, message] of early) {
      // Its own message, and those that were never answered: their Runs ended before this step.
      if (id === event.runId || (id !== runId && !stepped.has(id))) {
        ordered.push(message);
        early.delete(id);
      }
    }
    ordered.push(event);
  }
  const own = early.get(runId);
  early.delete(runId);
  ordered.push(...early.values(), ...(own ? [own] : []));
  return trigger === 'retry' ? answeredAnew(ordered, runId) : ordered;
}

function answeredAnew(events: TranscriptEvent[], runId: string): TranscriptEvent[] {
  const message = events.findLastIndex(({ type }) => type === 'message.added');
  return events.filter((event, i) => i <= message || event.runId === runId);
}

/**
 * The transcript as messages for a model. A call that an ended Run left open gets an answer too: providers refuse a
 * conversation in which a call has none.
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
      messages.push({ role: 'user', text: event.data.text, fileIds: event.data.fileIds });
    } else if (event.type === 'assistant.message_added') {
      settle();
      messages.push({ role: 'assistant', ...event.data });
      open = new Map(event.data.toolCalls.map((call) => [call.toolCallId, call]));
    } else if (event.type === 'tool.started') {
      started.add(event.data.toolCallId);
    } else if (event.type === 'tool.completed' && open.delete(event.data.toolCallId)) {
      const { toolCallId, toolName, outcome, result } = event.data;
      messages.push({ role: 'tool', toolCallId, toolName, outcome, result });
    }
  }
  settle();
  return messages;
}

const UNANSWERED = {
  unknown: 'The Run ended while this call was under way; it may have taken effect.',
  refused: 'The Run ended before this call; it was not carried out.',
};
