/** How long a turn of the event loop may take before sliced work waits for another one. Milliseconds. */
const SLICE_MS = 5;

let last: Promise<void> = Promise.resolve();
let turnBegan: number | null = null;

/**
 * Waits for a turn of the event loop that no other caller gets. Call it before a step that takes milliseconds, so that the
 * steps of several Runs never add up to one long turn.
 */
export function ownTurn(): Promise<void> {
  last = last.then(() => new Promise((resolve) => setImmediate(resolve)));
  return last;
}

/** Waits for a separate turn if all callers together have worked for long in this one. Otherwise returns undefined. */
export function pauseIfLong(): Promise<void> | undefined {
  if (turnBegan !== null) return performance.now() - turnBegan < SLICE_MS ? undefined : ownTurn();
  turnBegan = performance.now();
  setImmediate(() => (turnBegan = null));
  return undefined;
}
