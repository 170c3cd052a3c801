/**
 * Seeds that once failed; they always run. A seed means another simulation once something draws in another order, so what it
 * has found has a test of its own too.
 */
export const SEEDS_THAT_FAILED: readonly number[] = [
  // A worker that was stopped while it started took Runs afterwards (worker-loop.int.spec.ts).
  ...[7_417, 8_090, 9_339],
];
