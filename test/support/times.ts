/** Of a list that need not be sorted; `share` 1 is the largest. */
export const percentile = (times: readonly number[], share: number): number =>
  times.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(times.length * share) - 1)]!;

/** For the line that a test prints. */
export const toldTimes = (times: readonly number[]): string => {
  const [p50, p99, most] = [0.5, 0.99, 1].map((share) => percentile(times, share).toFixed(0));
  return `p50 ${p50} ms, p99 ${p99} ms, at most ${most} ms (n = ${times.length})`;
};
