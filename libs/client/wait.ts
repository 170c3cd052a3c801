const FIRST_MS = 500;
const MAX_MS = 30_000;
/** The longest pause that a service or a proxy can ask for. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;
/** Timers that are longer fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Returns how long to wait after the nth failed attempt, milliseconds: half to all of a time that doubles up to 30 s, so that
 * clients do not retry together. At least `retryAfter` seconds, at most 5 minutes.
 */
export function jitteredBackoff(attempt: number, retryAfter = 0): number {
  const longest = Math.min(MAX_MS, FIRST_MS * 2 ** (attempt - 1));
  return Math.max(Math.min(1_000 * retryAfter, MAX_RETRY_AFTER_MS), longest * (0.5 + Math.random() / 2));
}

/** Calls the function later; never if the time is longer than timers can be. Returns a function that prevents the call. */
export function later(ms: number, call: () => void): () => void {
  const timer = ms > MAX_TIMER_MS ? undefined : setTimeout(call, ms);
  return () => clearTimeout(timer);
}

/** Waits. Rejects with the signal's reason if it aborts. */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  let stop = (): void => undefined;
  const waited = new Promise<void>((resolve) => (stop = later(ms, resolve)));
  return unlessAborted(waited, signal).finally(stop);
}

/** Returns what the promise gives, or throws if it gives nothing in time. */
export function within<Value>(ms: number, promise: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const stop = later(ms, () => reject(new Error(`Nothing came in ${ms / 1_000} s.`)));
    promise.then(resolve, reject).finally(stop);
  });
}

/** Returns what the promise gives. Rejects with the signal's reason as soon as the signal aborts. */
export function unlessAborted<Value>(promise: Promise<Value>, signal?: AbortSignal): Promise<Value> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}
