import { useEffect, useRef, useState } from 'react';
import type { ThreadEventLogEntry as LogEntry } from '#contract';
import { followLog, type Connection } from './follow-log.ts';
import { addEarlier, addNewer, EMPTY_WINDOW, type LogWindow } from './log-window.ts';
import { readBefore, readLog } from './read-log.ts';

/** The minimum time between two updates of the shown log, milliseconds. The first entry is shown immediately. */
const SHOW_EVERY_MS = 100;

/** The maximum time for reading earlier entries, milliseconds. */
const EARLIER_WITHIN_MS = 60_000;

export interface LiveLog {
  window: LogWindow;
  connection: Connection;
  isReadingEarlier: boolean;
  /** Why earlier entries could not be read. */
  earlierError: Error | null;
  readEarlier: () => void;
}

type State = Omit<LiveLog, 'readEarlier'>;

const AT_FIRST: State = {
  window: EMPTY_WINDOW,
  connection: 'connecting',
  isReadingEarlier: false,
  earlierError: null,
};

/**
 * Follows the public log of a Thread for as long as it is shown; to be mounted anew for another Thread. `events`: how many
 * are stored, about. `onEntries` hears of what comes.
 */
export function useLiveLog(
  threadId: string,
  events: number,
  onEntries: (entries: readonly LogEntry[]) => void,
): LiveLog {
  const [state, setState] = useState(AT_FIRST);
  const [eventsAtFirst] = useState(events);
  const listener = useRef(onEntries);
  useEffect(() => void (listener.current = onEntries));
  const left = useRef(AbortSignal.abort());

  useEffect(() => {
    const leaving = new AbortController();
    left.current = leaving.signal;
    const gathered = gather((entries) => {
      setState((old) => ({ ...old, window: addNewer(old.window, entries) }));
      listener.current(entries);
    });
    const begin = ({ reachesStart }: { reachesStart: boolean }) =>
      setState((old) => ({ ...old, window: { ...EMPTY_WINDOW, reachesStart } }));
    void followLog({
      after: '',
      read: (after, signal, heard) => readLog(threadId, after, { events: eventsAtFirst, signal, heard, begin }),
      onEntry: gathered.add,
      onConnection: (connection) => setState((old) => (old.connection === connection ? old : { ...old, connection })),
      pause: (ms) => pauseUnlessHopeful(ms, leaving.signal),
      signal: leaving.signal,
    });
    return () => {
      leaving.abort();
      gathered.stop();
    };
  }, [threadId, eventsAtFirst]);

  const readEarlier = () => {
    const first = state.window.entries[0]?.id;
    if (first === undefined || state.isReadingEarlier) return;
    setState((old) => ({ ...old, isReadingEarlier: true, earlierError: null }));
    readBefore(threadId, first, AbortSignal.any([left.current, AbortSignal.timeout(EARLIER_WITHIN_MS)])).then(
      ({ entries, reachesStart }) =>
        setState((old) => {
          const window = addEarlier(old.window, entries, { before: first, reachesStart });
          return { ...old, window, isReadingEarlier: false };
        }),
      (earlierError: Error) => setState((old) => ({ ...old, isReadingEarlier: false, earlierError })),
    );
  };
  return { ...state, readEarlier };
}

/** Gives what was added on in groups: each piece of text alone would be drawn alone. */
function gather(give: (entries: readonly LogEntry[]) => void) {
  let held: LogEntry[] = [];
  let timer: number | undefined;
  let gaveAt = -Infinity;
  const giveAll = () => {
    timer = undefined;
    gaveAt = performance.now();
    const entries = held;
    held = [];
    give(entries);
  };
  return {
    add: (entry: LogEntry) => {
      held.push(entry);
      timer ??= window.setTimeout(giveAll, gaveAt + SHOW_EVERY_MS - performance.now());
    },
    stop: () => window.clearTimeout(timer),
  };
}

/** Also over when the network comes back, and when the signal is aborted. */
async function pauseUnlessHopeful(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = () => {
      window.clearTimeout(timer);
      window.removeEventListener('online', end);
      signal.removeEventListener('abort', end);
      resolve();
    };
    // Not all readers at the same moment, when a service comes back.
    const timer = window.setTimeout(end, ms * (0.75 + Math.random() / 2));
    window.addEventListener('online', end);
    signal.addEventListener('abort', end);
  });
}
