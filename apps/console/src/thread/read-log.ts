import type { ThreadEventLogEntry as LogEntry } from '#contract';
import { get, lines } from '../api/client.ts';

/** Beginning with so many of the newest stored events, and with so many more when earlier ones are asked for. */
const EVENTS_AT_ONCE = 1_000;
/** Before every id. */
const BEFORE_ALL = '0'.repeat(26);

export interface LogStart {
  after: string;
  /** Whether nothing comes before it. */
  reachesStart: boolean;
}

interface LogReader {
  /** How many the Thread has, about. */
  events: number;
  signal: AbortSignal;
  heard: () => void;
  begin: (start: LogStart) => void;
}

/** The log after an entry as it grows; with `''` after what `begin` is told. Throws CallError. */
export async function* readLog(
  threadId: string,
  after: string,
  { events, signal, heard, begin }: LogReader,
): AsyncGenerator<LogEntry> {
  let from = after;
  if (from === '') {
    const start = await startAfter(threadId, events - EVENTS_AT_ONCE, signal);
    begin(start);
    from = start.after;
  }
  yield* lines('GET', '/threads/{threadId}/tail', { params: { threadId }, query: { after: from } }, signal, heard);
}

/** Some of the entries before one of the log, up to it without gaps. Throws CallError. */
export async function readBefore(
  threadId: string,
  first: string,
  signal: AbortSignal,
): Promise<{ entries: LogEntry[]; reachesStart: boolean }> {
  const version = await findVersion(threadId, first, signal);
  // Few stored events have no entry; where a page of them has none, a larger one has.
  for (let count = EVENTS_AT_ONCE; ; count *= 4) {
    const { after, reachesStart } = await startAfter(threadId, version - 1 - count, signal);
    const entries: LogEntry[] = [];
    const call = { params: { threadId }, query: { after } };
    for await (const entry of lines('GET', '/threads/{threadId}/tail', call, signal)) {
      if (entry.id >= first) break;
      entries.push(entry);
    }
    if (entries.length > 0 || reachesStart) return { entries, reachesStart };
  }
}

async function startAfter(threadId: string, version: number, signal: AbortSignal): Promise<LogStart> {
  if (version < 1) return { after: BEFORE_ALL, reachesStart: true };
  return { after: await idAt(threadId, version, signal), reachesStart: false };
}

/** Versions of a stream have no gaps, and ids rise with them: an id is found by halves. */
async function findVersion(threadId: string, id: string, signal: AbortSignal): Promise<number> {
  const { events } = await get('/threads/{threadId}', { params: { threadId } }, signal);
  let [low, high] = [1, events];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((await idAt(threadId, middle, signal)) < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

async function idAt(threadId: string, version: number, signal: AbortSignal): Promise<string> {
  const query = { limit: 1, before: version + 1 };
  const { events } = await get('/threads/{threadId}/events', { params: { threadId }, query }, signal);
  return events[0]?.id ?? BEFORE_ALL;
}
