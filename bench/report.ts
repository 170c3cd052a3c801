import type { CountResult, Traffic } from './counts/count-result.ts';
import type { LatencyResult } from './latency-result.ts';
import { FLOOR_NAMES, type Figures, type FloorResult, type Result, type Target } from './measure.ts';

export interface NamedResult extends Result {
  /** The benchmark that measured it. */
  benchmark: string;
}

export interface Report {
  results: NamedResult[];
  counts: CountResult[];
  latencies: LatencyResult[];
}

export const COLUMNS = [
  ...['benchmark', 'measured', 'clients', 'Spool', 'p50', 'p99', 'spread'],
  ...['own floor', 'ratio', 'spread', 'independent floor', 'ratio', 'spread', 'target', 'verdict'],
];

export const COUNT_COLUMNS = [
  ...['for each', 'clients', 'counted', 'SQL statements', 'transactions', 'Redis commands'],
  ...['PostgreSQL bytes', 'Redis bytes', 'HTTP bytes', 'API CPU', 'worker CPU', 'PostgreSQL CPU', 'Redis CPU'],
];

const LATENCY_COLUMNS = ['latency', 'samples', 'p50', 'p99', 'spread', 'bound', 'verdict'];

/** Formats the results as Markdown tables, as in docs/benchmarks.md. Leaves out a table without rows. */
export function formatTables({ results, counts, latencies }: Report): string {
  const tables = [
    ...(results.length > 0 ? [formatTable(COLUMNS, results.map(rowOf))] : []),
    ...(counts.length > 0 ? [formatTable(COUNT_COLUMNS, counts.map(countRowOf))] : []),
    ...(latencies.length > 0 ? [formatTable(LATENCY_COLUMNS, latencies.map(latencyRowOf))] : []),
  ];
  return tables.join('\n\n');
}

function formatTable(columns: string[], rows: string[][]): string {
  const widths = columns.map((column, i) => Math.max(column.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: string[]) => `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`;
  return [line(columns), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

function rowOf({ benchmark, name, clients, by, subject, spread, floors, target, verdict }: NamedResult): string[] {
  return [
    benchmark,
    by === 'perSecond' ? name : `${name} (${by.replace('Ms', '')})`,
    `${clients}`,
    ...[showFigure(subject, 'perSecond'), showFigure(subject, 'p50Ms'), showFigure(subject, 'p99Ms')],
    showPercent(spread),
    ...FLOOR_NAMES.flatMap((floor) => showFloor(floors[floor], by)),
    showTarget(target),
    verdict,
  ];
}

function showFloor(floor: FloorResult | undefined, by: keyof Figures): string[] {
  if (floor === undefined) return ['', '', ''];
  return [showFigure(floor.figures, by), floor.ratio.toFixed(2), showPercent(floor.spread)];
}

function showFigure(figures: Figures, by: keyof Figures): string {
  const figure = figures[by];
  if (!Number.isFinite(figure)) return '';
  if (by === 'perSecond') return `${figure < 100 ? figure.toFixed(1) : showCount(figure)}/s`;
  return `${figure < 100 ? figure.toPrecision(3) : Math.round(figure)} ms`;
}

function showTarget(target: Target | null): string {
  if (target === null) return '';
  return 'atLeast' in target ? `≥ ${target.atLeast.toFixed(2)}` : `≤ ${target.atMost.toFixed(2)}`;
}

function countRowOf({ name, clients, operations, statements, transactions, ...of }: CountResult): string[] {
  const { redisCommands, bytes, cpuMs } = of;
  return [
    ...[name, `${clients}`, showCount(operations)],
    ...[statements, transactions, redisCommands].map((count) => count.toFixed(1)),
    ...[bytes.postgres, bytes.redis, bytes.http].map(showTraffic),
    ...[cpuMs.api, cpuMs.worker, cpuMs.postgres, cpuMs.redis].map((ms) => (ms === null ? '' : `${ms.toFixed(2)} ms`)),
  ];
}

function latencyRowOf({ name, samples, p50Ms, p99Ms, spread, boundMs, verdict }: LatencyResult): string[] {
  return [name, `${samples}`, showMs(p50Ms), showMs(p99Ms), showPercent(spread), showMs(boundMs), verdict];
}

/** Formats a latency as one line, for the row of a night part. */
export function describeLatency(result: LatencyResult): string {
  const [name, , p50, p99, spread, bound, verdict] = latencyRowOf(result);
  if (result.verdict === 'no result') return `${name}: no result`;
  return `${name}: p50 ${p50}, p99 ${p99}, spread ${spread} (bound ${bound}: ${verdict})`;
}

const showTraffic = ({ sent, received }: Traffic): string => `${showCount(sent)} out, ${showCount(received)} in`;
const showCount = (count: number): string => Math.round(count).toLocaleString('en');
const showPercent = (share: number): string => (Number.isFinite(share) ? `${(share * 100).toFixed(0)} %` : '–');
const showMs = (ms: number): string => (Number.isFinite(ms) ? `${ms.toFixed(0)} ms` : '–');
