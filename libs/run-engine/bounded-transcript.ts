import { BOUNDS, type RecordedFact, type ThreadEvent, type ToolCall } from '#domain';
import type { Fence, TranscriptBounds } from '#event-store';
import { pauseIfLong } from '#platform';
import { ownText } from './stored-text.ts';
import type { TranscriptEvent } from './transcript.ts';

/**
 * How much of its Thread a Run keeps in memory: far more than fits a model's window, and little for a worker with full slots.
 * Cut texts are still useful, because a model sees what it did and can do it again.
 */
export const TRANSCRIPT_BOUNDS: TranscriptBounds = {
  events: BOUNDS.transcripts.events.value,
  bytes: BOUNDS.transcripts.whole.value,
  characters: BOUNDS.transcripts.oldText.value,
  note: '\n[The rest is left out because this text is old.]',
};

type TextBounds = Omit<TranscriptBounds, 'events'>;

/** UTF-16 units that accumulate before older texts are cut, so that the cost of a step does not depend on earlier steps. */
const SLACK = BOUNDS.transcripts.growth.value;

/**
 * The transcript of a running Run, with the limits that `ThreadStore.readTranscript` applies at a boot: it keeps all steps that
 * were read, and only the newest ones whole. `readTranscript` already limits what people said.
 */
export class BoundedTranscript {
  /** UTF-16 units that can be cut, of the events from `whole` on. */
  private units: number;
  /** The index of the first event that must stay whole. */
  private whole = 0;
  private readonly unitsAtFirst: number;

  constructor(
    private readonly all: TranscriptEvent[],
    private readonly bounds: TextBounds = TRANSCRIPT_BOUNDS,
    private readonly slack = SLACK,
  ) {
    this.units = all.reduce((sum, event) => sum + unitsOf(event), 0);
    this.cutWhenDue();
    this.unitsAtFirst = this.units;
  }

  /** UTF-16 units by which it has grown since it was read; negative if more was cut. */
  get growth(): number {
    return this.units - this.unitsAtFirst;
  }

  /** The events, oldest first. */
  get events(): readonly TranscriptEvent[] {
    return this.all;
  }

  /** Adds the fact if it belongs to a transcript. */
  add(fact: RecordedFact, fence: Fence): void {
    const event = toTranscriptEvent(fact, fence);
    if (event === null) return;
    this.all.push(event);
    this.units += unitsOf(event);
    this.cutWhenDue();
  }

  private cutWhenDue(): void {
    const { all, bounds, slack } = this;
    if (this.units <= bounds.bytes + slack) return;
    let from = all.length;
    let units = 0;
    for (; from > this.whole; from--) {
      const more = unitsOf(all[from - 1]!);
      if (units + more > bounds.bytes) break;
      units += more;
    }
    // The newest message stays whole, because its calls might not have run yet.
    const newest = all.findLastIndex(({ type }) => type === 'assistant.message_added');
    for (let i = this.whole; i < from; i++) if (i !== newest) all[i] = cutEvent(all[i]!, bounds);
    this.whole = newest === -1 ? from : Math.min(from, newest);
    this.units = units;
  }
}

function toTranscriptEvent(fact: RecordedFact, fence: Fence): TranscriptEvent | null {
  const event = { ...fact, ...fence } as ThreadEvent;
  switch (event.type) {
    case 'assistant.message_added': {
      const { thinking: _, ...data } = event.data;
      return { ...event, data };
    }
    case 'tool.started':
      return { ...event, data: { toolCallId: event.data.toolCallId } };
    case 'tool.completed': {
      const { summary: _, ...data } = event.data;
      return { ...event, data };
    }
    default:
      return null;
  }
}

const knownUnits = new WeakMap<TranscriptEvent, number>();

/** Measures events in slices of time, so that a `BoundedTranscript` of them is created quickly. */
export async function measure(events: readonly TranscriptEvent[]): Promise<void> {
  for (const event of events) {
    unitsOf(event);
    await pauseIfLong();
  }
}

function unitsOf(event: TranscriptEvent): number {
  const units = knownUnits.get(event) ?? countUnits(event);
  knownUnits.set(event, units);
  return units;
}

function countUnits({ type, data }: TranscriptEvent): number {
  if (type === 'tool.completed') return data.result.length;
  if (type === 'run.cancelled') return data.text.length;
  if (type !== 'assistant.message_added') return 0;
  return data.text.length + JSON.stringify([data.toolCalls, data.continuation]).length;
}

/** Returns the event with long texts cut, or the same event if none is too long. */
function cutEvent(event: TranscriptEvent, bounds: TextBounds): TranscriptEvent {
  if (event.type === 'tool.completed') {
    const result = cutText(event.data.result, bounds);
    return result === event.data.result ? event : { ...event, data: { ...event.data, result } };
  }
  if (event.type === 'run.cancelled') {
    const text = cutText(event.data.text, bounds);
    return text === event.data.text ? event : { ...event, data: { text } };
  }
  if (event.type !== 'assistant.message_added') return event;
  const { continuation: _, ...data } = event.data;
  const toolCalls = data.toolCalls.map((call) => cutCall(call, bounds));
  return { ...event, data: { ...data, text: cutText(data.text, bounds), toolCalls } };
}

function cutCall(call: ToolCall, { characters }: TextBounds): ToolCall {
  const isLong = JSON.stringify(call.toolInput).length > characters;
  const { invalidInput } = call;
  return {
    ...call,
    ...(isLong ? { toolInput: {} } : {}),
    ...(invalidInput === undefined ? {} : { invalidInput: firstOf(invalidInput, characters) }),
  };
}

function cutText(text: string, { characters, note }: TextBounds): string {
  return text.length <= characters + note.length ? text : firstOf(text, characters) + note;
}

/** Returns the first `units` UTF-16 units, and never half a character. */
function firstOf(text: string, units: number): string {
  return ownText(text.slice(0, units).replace(/[\uD800-\uDBFF]$/, ''));
}
