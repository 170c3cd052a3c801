import type { ThreadEventLogEntry as Entry } from '#contract';

/** So many entries are held at first; asking for earlier ones raises it by what was asked for. */
export const HELD_ENTRIES = 5_000;
/** Dropped in one go, and not one by one with each entry that comes. */
const SLACK = 500;

/** The part of a Thread's log that the page holds: without gaps, up to the newest entry that has come. */
export interface LogWindow {
  entries: readonly Entry[];
  /** Whether its first entry is the first of the Thread. */
  reachesStart: boolean;
  limit: number;
}

export const EMPTY_WINDOW: LogWindow = { entries: [], reachesStart: false, limit: HELD_ENTRIES };

/** With entries that have come; what is held already changes nothing. */
export function addNewer(window: LogWindow, newer: readonly Entry[]): LogWindow {
  const last = window.entries.at(-1)?.id ?? '';
  const added = newer.filter(({ id }) => id > last);
  if (added.length === 0) return window;
  const entries = [...window.entries, ...added];
  if (entries.length <= window.limit + SLACK) return { ...window, entries };
  return { ...window, entries: entries.slice(-window.limit), reachesStart: false };
}

/** With entries that were asked for, all up to `before`; unchanged where that is no longer the first that is held. */
export function addEarlier(
  window: LogWindow,
  earlier: readonly Entry[],
  { before, reachesStart }: { before: string; reachesStart: boolean },
): LogWindow {
  if (window.entries[0]?.id !== before) return window;
  return { entries: [...earlier, ...window.entries], reachesStart, limit: window.limit + earlier.length };
}
