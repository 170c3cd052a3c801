import type { SimulationResult } from './simulation.ts';

/** A name a word: what is a Thread, a Run or a request is told by the lines that it stands in. */
const ULID = /[0-9A-HJKMNP-TV-Z]{26}/g;

/** A trace with ids that one can remember, in the order in which they appear: `#1`, `#2`. */
export function readable(trace: readonly string[]): string {
  const names = new Map<string, string>();
  return trace
    .join('\n')
    .replaceAll(ULID, (id) => names.get(id) ?? (names.set(id, `#${names.size + 1}`), names.get(id)!));
}

/** How often what happened in them, the rarest first: what is missing was not tried. */
function rarest(results: readonly SimulationResult[]): string {
  const counts = new Map<string, number>();
  for (const { seen } of results) for (const [what, count] of seen) counts.set(what, (counts.get(what) ?? 0) + count);
  const inOrder = [...counts].toSorted(([, a], [, b]) => a - b);
  return inOrder.map(([what, count]) => `${count} ${what}`).join(', ');
}

/** What to print of seeds that were run: how fast (of one core: the machine may be busy), and how much happened in them. */
export function summary(results: readonly SimulationResult[], seconds: number): string {
  const sum = (of: (result: SimulationResult) => number): number =>
    results.reduce((total, each) => total + of(each), 0);
  const count = results.length;
  const mean = (of: (result: SimulationResult) => number): string => (sum(of) / count).toFixed(0);
  const slowest = Math.max(...results.map(({ settledMs }) => settledMs));
  return [
    `${count} seeds in ${seconds.toFixed(1)} s of CPU, ${(count / seconds).toFixed(0)} seeds/s`,
    `${mean(({ steps }) => steps)} steps, ${mean(({ runs }) => runs)} Runs, ${mean(({ events }) => events)} events a seed`,
    `at rest ${(slowest / 1_000).toFixed(1)} s after the last fault at the latest`,
    `\n  ${rarest(results)}`,
  ].join('; ');
}
