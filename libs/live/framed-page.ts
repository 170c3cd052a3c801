import { toExtendedLogEntry, toLogEntry, type LogEntry } from '#domain';
import type { LogPage, StreamEnd } from '#event-store';

/** Returns the wire form of an entry. */
export type RenderEntry = (entry: LogEntry) => string;

/** The concatenated wire forms of entries. */
export interface Frames {
  frames: Buffer;
  /** The id of each entry, and its offset in `frames`. */
  starts: { id: string; at: number }[];
}

/** A page of a Thread's log. All readers share the bytes of its plain and its extended entries. */
export interface FramedPage {
  /** Returns its entries with or without their optional fields; renders each kind at its first use. */
  framesOf: (extended: boolean) => Frames;
  /** The id and version of the last event in the page; '' and 0 if it is empty. */
  lastId: string;
  lastVersion: number;
  /** The end of the stream at the time of the read; null if the log continues after the page. */
  end: StreamEnd | null;
}

export function framePage({ events, end }: LogPage, render: RenderEntry): FramedPage {
  const plain = lazily(() => frameEntries(events.map(toLogEntry), render));
  const extended = lazily(() => frameEntries(events.map(toExtendedLogEntry), render));
  const last = events.at(-1);
  const framesOf = (wanted: boolean): Frames => (wanted ? extended() : plain());
  return { framesOf, lastId: last?.id ?? '', lastVersion: last?.version ?? 0, end };
}

function frameEntries(entries: readonly (LogEntry | null)[], render: RenderEntry): Frames {
  const starts: Frames['starts'] = [];
  const frames: Buffer[] = [];
  let length = 0;
  for (const entry of entries) {
    if (entry === null) continue;
    const frame = Buffer.from(render(entry));
    starts.push({ id: entry.id, at: length });
    frames.push(frame);
    length += frame.length;
  }
  return { frames: frames.length === 1 ? frames[0]! : Buffer.concat(frames, length), starts };
}

function lazily<Value>(make: () => Value): () => Value {
  let made: { value: Value } | undefined;
  return () => (made ??= { value: make() }).value;
}

/** Returns the frames after the id, without a copy, and the number of their entries. */
export function framesAfter({ frames, starts }: Frames, id: string): { bytes: Buffer; entries: number } {
  const first = starts.findIndex((start) => start.id > id);
  if (first === -1) return NOTHING;
  return { bytes: frames.subarray(starts[first]!.at), entries: starts.length - first };
}

const NOTHING = { bytes: Buffer.alloc(0), entries: 0 };
