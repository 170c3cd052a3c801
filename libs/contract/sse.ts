import type { ErrorEnvelope, ThreadEventLogEntry } from './records.ts';

/** Frames of the event stream (decisions, section 5). JSON has no raw line breaks, so `data` is always one line. */
export const KEEPALIVE_FRAME = ': keepalive\n\n';

/** The first frame; clients that lose the connection come back after `retryMs`. */
export function connectedFrame(retryMs: number): string {
  return `: connected\nretry: ${retryMs}\n\n`;
}

export function threadEventFrame(entry: ThreadEventLogEntry): string {
  return `event: thread.event\nid: ${entry.id}\ndata: ${JSON.stringify(entry)}\n\n`;
}

/** The last frame of a stream that the caller may no longer read. */
export function threadErrorFrame(envelope: ErrorEnvelope): string {
  return `event: thread.error\ndata: ${JSON.stringify(envelope)}\n\n`;
}

/** The last frame of `?until=idle`. It carries data because browsers do not dispatch an event without. */
export const THREAD_IDLE_FRAME = 'event: thread.idle\ndata: {}\n\n';
