import type { ThreadEventLogEntry } from './log-entries.ts';
import type { ErrorEnvelope } from './records.ts';

/**
 * Lines between the frames of the event stream (docs/spec/decisions.md#stream). They end with one line feed, because
 * some clients take every blank line for the end of a message and would try to parse its empty data.
 */
export const KEEPALIVE = ': keepalive\n';

/** Names the last entry at the time when a stream opens, so that its reader knows when it has read the past. */
export const LAST_EVENT_HEADER = 'Spool-Last-Event-Id';

/** Returns the first lines. Clients that lose the connection come back after `retryMs`. */
export function preamble(retryMs: number): string {
  return `: connected\nretry: ${retryMs}\n`;
}

/** Returns the frame of an entry. JSON has no raw line breaks, so `data` is always one line. */
export function threadEventFrame(entry: ThreadEventLogEntry): string {
  return `event: thread.event\nid: ${entry.id}\ndata: ${JSON.stringify(entry)}\n\n`;
}

/** The last frame of a stream that the caller may no longer read. */
export function threadErrorFrame(envelope: ErrorEnvelope): string {
  return `event: thread.error\ndata: ${JSON.stringify(envelope)}\n\n`;
}

/** The last frame of `?until=idle`. It carries data because browsers do not dispatch an event without. */
export const THREAD_IDLE_FRAME = 'event: thread.idle\ndata: {}\n\n';
