const FIRST_MS = 500;
const MAX_MS = 30_000;

/**
 * Returns how long to wait after the nth failed attempt, milliseconds: half to all of a time that doubles up to 30 s, so that
 * clients do not retry together. At least `retryAfter` seconds.
 */
export function jitteredBackoff(attempt: number, retryAfter = 0): number {
  const longest = Math.min(MAX_MS, FIRST_MS * 2 ** (attempt - 1));
  return Math.max(1_000 * retryAfter, longest * (0.5 + Math.random() / 2));
}

/** Waits. Rejects with the signal's reason if it aborts. */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}

/** Returns what the promise gives, or throws if it gives nothing in time. */
export function within<Value>(ms: number, promise: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`Nothing came in ${ms / 1_000} s.`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
