import { useSyncExternalStore } from 'react';

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let now = Date.now();

function listen(listener: () => void): () => void {
  listeners.add(listener);
  if (timer === undefined) {
    now = Date.now();
    timer = setInterval(tick, 1_000);
    document.addEventListener('visibilitychange', tick);
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
    document.removeEventListener('visibilitychange', tick);
  };
}

function tick(): void {
  if (document.hidden) return;
  now = Date.now();
  for (const listener of listeners) listener();
}

/**
 * What `tell` makes of the time, in epoch milliseconds, anew each second while the tab is looked at; one timer for all.
 * Drawn again only where that has become another: a list of a thousand times stands still while nothing changes.
 */
export const useClock = <Told extends string | number>(tell: (now: number) => Told): Told =>
  useSyncExternalStore(listen, () => tell(now));
