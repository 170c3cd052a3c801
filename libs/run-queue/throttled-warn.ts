import type { Logger } from '#platform';
import { monotonicNow } from './monotonic-now.ts';

const SILENCE_MS = 5_000;

/** A warning for what goes on failing: at most one line every five seconds, which says how many it stands for. */
export function throttledWarn(
  logger: Logger,
  now: () => number = monotonicNow,
): (error: unknown, message: string) => void {
  let silentUntil = -Infinity;
  let unsaid = 0;
  return (error, message) => {
    unsaid++;
    if (now() < silentUntil) return;
    logger.warn({ err: error, times: unsaid }, message);
    silentUntil = now() + SILENCE_MS;
    unsaid = 0;
  };
}
