/** Returns milliseconds of a monotonic clock: if the system clock steps back an hour, periodic work must not stop. */
export function monotonicNow(): number {
  return performance.now();
}
