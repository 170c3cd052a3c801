import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Prints a measured figure. A night part also writes it into its row of docs/reliability.md (scripts/night.mjs). */
export function reportFigure(text: string): void {
  process.stderr.write(`${text}\n`);
  const file = process.env.SPOOL_FIGURES_FILE;
  if (file !== undefined) appendFileSync(file, `${text}\n`);
}

/**
 * Prints a Markdown table. The night also writes it into docs/reliability.md, between the markers with this name.
 *
 * @param lines the header row, the delimiter row and the data rows.
 */
export function reportTable(name: string, lines: readonly string[]): void {
  process.stderr.write(`${lines.join('\n')}\n`);
  const folder = process.env.SPOOL_TABLES_FOLDER;
  if (folder !== undefined) writeFileSync(join(folder, name), lines.join('\n'));
}

/** One line of JSON in the file that SPOOL_LATENCIES_FILE names. `npm run bench -- latency` reads it. */
export interface ReportedLatency {
  what: string;
  boundMs: number;
  /** The figure that the bound applies to. */
  tookMs: number;
  samplesMs: readonly number[];
}

/**
 * Prints a latency and its bound, in milliseconds. A missed bound fails no test. With several samples, the bound applies to
 * their `quantile`: 0.5 is the median, 1 the longest.
 */
export function reportLatency(boundMs: number, took: number | readonly number[], what: string, quantile = 1): void {
  const samplesMs = typeof took === 'number' ? [took] : took;
  const sorted = samplesMs.toSorted((a, b) => a - b);
  const tookMs = sorted[Math.max(0, Math.ceil(quantile * sorted.length) - 1)] ?? NaN;
  reportFigure(
    `${what} ${tookMs.toFixed(0)} ms (bound ${boundMs.toFixed(0)} ms: ${tookMs <= boundMs ? 'held' : 'MISSED'})`,
  );
  const file = process.env.SPOOL_LATENCIES_FILE;
  const reported: ReportedLatency = { what, boundMs, tookMs, samplesMs };
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(reported)}\n`);
}
