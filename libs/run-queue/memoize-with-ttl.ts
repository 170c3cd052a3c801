import { monotonicNow } from './monotonic-now.ts';

/** A value that is loaded on demand and cached until it is too old. */
export interface Memoized<T> {
  get(): Promise<T>;
  forget(): void;
}

/** Caches the result of `load` for `maxAgeMs`. Concurrent callers share one load. A failed load is not cached. */
export function memoizeWithTtl<T>(
  maxAgeMs: number,
  load: () => Promise<T>,
  now: () => number = monotonicNow,
): Memoized<T> {
  let value: Promise<T> | null = null;
  let loadedAt = 0;
  const forget = (): void => {
    value = null;
  };
  return {
    forget,
    get: () => {
      if (value !== null && now() - loadedAt < maxAgeMs) return value;
      const loading = load();
      value = loading;
      loadedAt = now();
      loading.catch(() => {
        if (value === loading) forget();
      });
      return loading;
    },
  };
}
