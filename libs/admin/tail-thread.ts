import { toExtendedLogEntry, type ExtendedLogEntry } from '#domain';
import type { ThreadStore } from '#event-store';
import type { LiveBus } from '#live';
import { isLargeJson, ownTurn } from '#platform';

const PAGE = { maxEvents: 200, maxBytes: 64 * 1024, timeoutMs: 5_000 } as const;
const SHOWN_FIRST = 20;
/** The interval at which lost wake-ups and deletions are noticed, milliseconds. */
const POLL_MS = 2_000;

export interface TailWanted {
  threadId: string;
  /** Starts after this entry; by default with the latest 20. */
  after?: string | undefined;
  /** Ends once no Run is active and all entries are delivered. */
  untilIdle: boolean;
}

/** Follows the public log, with all optional fields, until the Thread is deleted or the signal aborted. Throws DatabaseUnavailable. */
export async function* tailThread(
  { store, bus }: { store: ThreadStore; bus: LiveBus },
  { threadId, after, untilIdle }: TailWanted,
  signal: AbortSignal,
): AsyncGenerator<ExtendedLogEntry> {
  const moves = watchMoves(bus, threadId, signal);
  try {
    let last = after ?? (await store.findLogStart(threadId, SHOWN_FIRST));
    while (!signal.aborted) {
      // Before the read, so that a wake-up during it causes another read.
      moves.forget();
      const page = await store.readLogPage(threadId, last, PAGE);
      if (page === null) return;
      if (isLargeJson(page.events)) await ownTurn();
      for (const event of page.events) {
        const entry = toExtendedLogEntry(event);
        if (entry !== null) yield entry;
        last = event.id;
      }
      if (page.end === null) continue;
      if (untilIdle && page.end.idle) return;
      await moves.next();
    }
  } finally {
    moves.stop();
  }
}

function watchMoves(bus: LiveBus, threadId: string, signal: AbortSignal) {
  let hasMoved = false;
  let wake: () => void = () => undefined;
  const move = (): void => {
    hasMoved = true;
    wake();
  };
  const ignore = bus.onWake((moved) => {
    if (moved === threadId) move();
  });
  signal.addEventListener('abort', move);
  return {
    forget: (): void => void (hasMoved = signal.aborted),
    next: async (): Promise<void> => {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        wake = resolve;
        timer = setTimeout(resolve, POLL_MS);
        if (hasMoved) resolve();
      });
      clearTimeout(timer);
    },
    stop: (): void => {
      ignore();
      signal.removeEventListener('abort', move);
    },
  };
}
