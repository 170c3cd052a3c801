/** A clock that moves only when told to. */
export interface FixedClock {
  now: () => number;
  advance: (byMs: number) => void;
}

export function fixedClock(startMs: number): FixedClock {
  let nowMs = startMs;
  return {
    now: () => nowMs,
    advance: (byMs) => {
      nowMs += byMs;
    },
  };
}
