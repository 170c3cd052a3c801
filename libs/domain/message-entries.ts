import { removeCitations } from './citations.ts';
import { isKnownEvent } from './event-types.ts';
import type { EventOf, EventPlace, StoredEvent, UnknownEvent } from './events.ts';
import { toExtendedLogEntry } from './log-entry.ts';
import type { MessageEntry } from './reduce-thread.ts';
import { stepId } from './state.ts';

/**
 * Returns the entries of a stored event for `reduceThread`. A stored message of the Agent becomes one delta with its whole thinking
 * and one with its whole text. Folding stored messages thus gives the same result as folding the log with all its deltas.
 */
export function toMessageEntries(event: StoredEvent | UnknownEvent): MessageEntry[] {
  if (isKnownEvent(event) && event.type === 'assistant.message_added') return spokenBy(event);
  const entry = toExtendedLogEntry(event);
  return entry === null ? [] : [entry];
}

function spokenBy(event: EventOf<'assistant.message_added'> & EventPlace): MessageEntry[] {
  const { runId, attempt, data } = event;
  if (runId === null || typeof data !== 'object' || data === null) return [];
  const isNumbered = attempt !== null && Number.isSafeInteger(data.step);
  const step = isNumbered ? { stepId: stepId(runId, attempt, data.step ?? 0) } : {};
  const delta = (type: string, text: unknown): MessageEntry[] => {
    const content = typeof text === 'string' ? removeCitations(text).text : '';
    return content === '' ? [] : [{ ...placeOf(event), type, content, ...step }];
  };
  return [
    ...delta('agent.thinking.delta', data.thinking),
    ...delta('agent.message.delta', data.text),
    // In the log, the usage of the step ends its text.
    { ...placeOf(event), type: 'usage.updated', content: '' },
  ];
}

function placeOf({ id, occurredAt, runId }: StoredEvent) {
  return { id, occurredAt, runId, status: 'available', durationMs: null };
}
