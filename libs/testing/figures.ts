import { appendFileSync } from 'node:fs';

/** Prints a measured figure. A night part also writes it into its row of docs/reliability.md (scripts/night.mjs). */
export function reportFigure(text: string): void {
  process.stderr.write(`${text}\n`);
  const file = process.env.SPOOL_FIGURES_FILE;
  if (file !== undefined) appendFileSync(file, `${text}\n`);
}

/** Prints a latency beside its bound. A latency is a figure: a missed bound fails no test. Milliseconds. */
export function reportLatency(boundMs: number, tookMs: number, what: string): void {
  reportFigure(
    `${what} ${tookMs.toFixed(0)} ms (bound ${boundMs.toFixed(0)} ms: ${tookMs <= boundMs ? 'held' : 'MISSED'})`,
  );
}
