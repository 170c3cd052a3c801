import type { Logger } from '#platform';
import { monotonicNow } from './monotonic-now.ts';

const SILENCE_MS = 5_000;

/** Returns a function that logs repeated failures: at most one line every five seconds, with the number of failures as `times`. */
export function throttledWarn(
  logger: Logger,
  now: () => number = monotonicNow,
): (error: unknown, message: string) => void {
  let silentUntil = -Infinity;
  let failures = 0;
  return (error, message) => {
    failures++;
    if (now() < silentUntil) return;
    logger.warn({ err: error, times: failures }, message);
    silentUntil = now() + SILENCE_MS;
    failures = 0;
  };
}
