import type { Figures, Result, Target } from './measure.ts';

const COLUMNS = ['benchmark', 'clients', 'Spool', 'p50', 'p99', 'floor', 'p50', 'ratio', 'spread', 'target', 'verdict'];

/** All results as a table in Markdown, as docs/benchmarks.md has it. */
export function formatTable(results: Result[]): string {
  const rows = results.map(rowOf);
  const widths = COLUMNS.map((column, i) => Math.max(column.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: string[]) => `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`;
  return [line(COLUMNS), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

function rowOf({ name, clients, by, subject, floor, ratio, spread, target, verdict }: Result): string[] {
  const compared = by === 'perSecond' ? '' : ` (${by.replace('Ms', '')})`;
  const shownRatio = ratio === null ? '' : ratio.toFixed(2) + compared;
  const percent = `${(spread * 100).toFixed(0)} %`;
  return [
    name,
    `${clients}`,
    ...showFigures(subject),
    ...showFloor(floor),
    shownRatio,
    percent,
    showTarget(target),
    verdict,
  ];
}

const showFigures = ({ perSecond, p50Ms, p99Ms }: Figures) => [
  `${showCount(perSecond)}/s`,
  showMs(p50Ms),
  showMs(p99Ms),
];
const showFloor = (floor: Figures | null) => (floor === null ? ['', ''] : showFigures(floor).slice(0, 2));
const showCount = (count: number) => (count < 100 ? count.toFixed(1) : Math.round(count).toLocaleString('en'));
const showMs = (ms: number) => (Number.isFinite(ms) ? `${ms < 100 ? ms.toPrecision(3) : Math.round(ms)} ms` : '');

function showTarget(target: Target | null): string {
  if (target === null) return '';
  return 'atLeast' in target ? `≥ ${target.atLeast.toFixed(2)}` : `≤ ${target.atMost.toFixed(2)}`;
}
