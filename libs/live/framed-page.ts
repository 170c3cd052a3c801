import { toLogEntry, type LogEntry } from '#domain';
import type { LogPage, StreamEnd } from '#event-store';

/** An entry as it goes over the wire. */
export type RenderEntry = (entry: LogEntry) => string;

/** A page of a Thread's log as it goes over the wire: rendered once, whoever reads it takes a piece of the same bytes. */
export interface FramedPage {
  frames: Buffer;
  /** The id of each entry in `frames`, and where it starts there. */
  starts: { id: string; at: number }[];
  /** Of the last event in the page; '' and 0 when it is empty. */
  lastId: string;
  lastVersion: number;
  /** Where the stream ended when it was read, null when there was more of the log after the page. */
  end: StreamEnd | null;
}

export function framePage({ events, end }: LogPage, render: RenderEntry): FramedPage {
  const starts: FramedPage['starts'] = [];
  const frames: Buffer[] = [];
  let length = 0;
  for (const event of events) {
    const entry = toLogEntry(event);
    if (entry === null) continue;
    const frame = Buffer.from(render(entry));
    starts.push({ id: entry.id, at: length });
    frames.push(frame);
    length += frame.length;
  }
  const last = events.at(-1);
  const bytes = frames.length === 1 ? frames[0]! : Buffer.concat(frames, length);
  return { frames: bytes, starts, lastId: last?.id ?? '', lastVersion: last?.version ?? 0, end };
}

/** What of the page comes after the id, no copy, and how many entries that are. */
export function framesAfter({ frames, starts }: FramedPage, id: string): { bytes: Buffer; entries: number } {
  const first = starts.findIndex((start) => start.id > id);
  if (first === -1) return NOTHING;
  return { bytes: frames.subarray(starts[first]!.at), entries: starts.length - first };
}

const NOTHING = { bytes: Buffer.alloc(0), entries: 0 };
