import { reduceThread, type ThreadMessages } from '#client';
import type { ThreadEventLogEntry as LogEntry } from '#contract';

/** How many entries are held at first. Each request for earlier entries raises it by their number. */
export const HELD_ENTRIES = 5_000;
/** Entries beyond the limit are dropped together, because messages are then assembled from all entries again. */
const SLACK = 500;

/** The part of a Thread's log that the page holds: without gaps, up to the newest entry. */
export interface LogWindow {
  entries: readonly LogEntry[];
  /** The messages of the entries. The first one may be incomplete. */
  conversation: ThreadMessages;
  /** Whether the first entry is the first of the Thread. */
  reachesStart: boolean;
  limit: number;
}

export const EMPTY_WINDOW: LogWindow = {
  entries: [],
  conversation: { messages: [] },
  reachesStart: false,
  limit: HELD_ENTRIES,
};

/** Returns the window with the newer entries. Entries that it holds already are ignored. */
export function addNewer(window: LogWindow, newer: readonly LogEntry[]): LogWindow {
  const last = window.entries.at(-1)?.id ?? '';
  const added = newer.filter(({ id }) => id > last);
  if (added.length === 0) return window;
  const entries = [...window.entries, ...added];
  if (entries.length <= window.limit + SLACK) {
    return { ...window, entries, conversation: reduceThread(added, window.conversation) };
  }
  const held = entries.slice(-window.limit);
  return { ...window, entries: held, conversation: reduceThread(held), reachesStart: false };
}

/** Returns the window with all entries up to `before`. Changes nothing if `before` is no longer the first entry of the window. */
export function addEarlier(
  window: LogWindow,
  earlier: readonly LogEntry[],
  { before, reachesStart }: { before: string; reachesStart: boolean },
): LogWindow {
  if (window.entries[0]?.id !== before) return window;
  const entries = [...earlier, ...window.entries];
  return { entries, conversation: reduceThread(entries), reachesStart, limit: window.limit + earlier.length };
}
