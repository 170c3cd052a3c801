import { useSyncExternalStore } from 'react';

/** Since when the service has not answered, epoch milliseconds; null: it does. */
let unreachableSince: number | null = null;
const listeners = new Set<() => void>();

/** Nothing answered, or a proxy in place of a service that is away: the service itself never answers so. */
const UNREACHABLE = [0, 502, 504];
export const meansUnreachable = (status: number): boolean => UNREACHABLE.includes(status);

/**
 * It is back once it has answered for so long, and not with its first answer: where one of two pods is away, every other
 * request fails, and all that is read anew when the service is back would be read anew without end. Milliseconds.
 */
const SETTLES_IN_MS = 1_000;
let settling: ReturnType<typeof setTimeout> | undefined;

/** Notes what became of a request: a status, or 0 where nothing answered. */
export function noteAnswer(status: number): void {
  if (meansUnreachable(status)) {
    clearTimeout(settling);
    settling = undefined;
    if (unreachableSince === null) become(Date.now());
  } else if (unreachableSince !== null) {
    settling ??= setTimeout(() => {
      settling = undefined;
      become(null);
    }, SETTLES_IN_MS);
  }
}

function become(since: number | null): void {
  unreachableSince = since;
  for (const listener of listeners) listener();
}

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const unreachableSinceNow = (): number | null => unreachableSince;

export const useUnreachableSince = (): number | null => useSyncExternalStore(listen, unreachableSinceNow);
