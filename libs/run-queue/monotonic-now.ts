/** Milliseconds of a clock that is never set: one that steps back an hour must not stop what happens every second. */
export function monotonicNow(): number {
  return performance.now();
}
