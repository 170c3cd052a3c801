import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BENCHMARKS, ON_PAGE } from './benchmarks.ts';
import type { Conditions } from './conditions.ts';
import { formatResults, generatedPart, replaceResults } from './page.ts';
import { COLUMNS, COUNT_COLUMNS, type Report } from './report.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../docs/benchmarks.md'), 'utf8');

const cellsOf = (line: string): string[] =>
  line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());

/** Returns the Markdown tables of a text: header, line of dashes, rows. */
function tablesOf(text: string): { columns: string[]; rows: string[][] }[] {
  const blocks = text.split('\n\n').filter((block) => block.startsWith('|'));
  return blocks.map((block) => {
    const [columns = [], , ...rows] = block.split('\n').map(cellsOf);
    return { columns, rows };
  });
}

const conditions: Conditions = {
  commit: 'abc123',
  date: '2026-11-23 01:00',
  cpu: 'A CPU',
  cores: 2,
  node: 'v20.20.0',
  rounds: 5,
  roundMs: 3_000,
  size: 'full',
  otherSettings: {},
  services: { server_version: '15.20', redis_version: '7.0.15', fsync: 'on' },
};

const figures = { perSecond: 1_234.5, p50Ms: 2.5, p99Ms: 12.25 };
const report: Report = {
  results: [
    {
      ...{ benchmark: 'append', name: 'append to a new stream', clients: 8, by: 'perSecond' },
      ...{ subject: figures, spread: 0.02, target: { atLeast: 0.8 }, verdict: 'met' },
      floors: {
        own: { figures: { ...figures, perSecond: 1_500 }, ratio: 0.823, spread: 0.05 },
        independent: { figures: { ...figures, perSecond: 2_469 }, ratio: 0.5, spread: 0.141 },
      },
    },
    {
      ...{ benchmark: 'round-trip', name: 'POST to first text', clients: 1, by: 'p50Ms' },
      ...{ subject: figures, spread: 0.2, target: null, verdict: 'no result' },
      floors: { independent: { figures, ratio: 1, spread: 0 } },
    },
  ],
  counts: [
    {
      ...{ name: 'accepted Thread', clients: 1, operations: 200, statements: 1, transactions: 1, redisCommands: 2.25 },
      bytes: {
        postgres: { sent: 3_000.4, received: 100 },
        redis: { sent: 200, received: 50 },
        http: { sent: 400, received: 900 },
      },
      cpuMs: { api: 1.234, worker: null, postgres: 0.5, redis: 0.01 },
    },
  ],
  latencies: [],
};

describe('docs/benchmarks.md', () => {
  const tables = tablesOf(generatedPart(PAGE));

  it('has the columns of the report', () => {
    expect(tables.map(({ columns }) => columns)).toEqual([COLUMNS, COUNT_COLUMNS]);
  });

  it('has results of every benchmark of the page and no others', () => {
    const [results] = tables;
    const measured = new Set(results?.rows.map(([benchmark]) => benchmark));
    expect([...measured, 'counts'].toSorted()).toEqual(ON_PAGE.toSorted());
  });

  it('explains every benchmark by its name', () => {
    for (const name of Object.keys(BENCHMARKS)) expect(PAGE).toContain(`| \`${name}\` |`);
  });

  it('states commit, machine, versions and rounds of the measurement', () => {
    for (const label of ['Commit', 'Date', 'Machine', 'Versions', 'PostgreSQL settings', 'Rounds']) {
      expect(generatedPart(PAGE)).toMatch(new RegExp(`^- ${label}: .+`, 'm'));
    }
  });

  it('has a full run of one commit', () => {
    expect(generatedPart(PAGE)).toMatch(/^- Commit: [0-9a-f]{10}$/m);
    expect(generatedPart(PAGE)).not.toMatch(/BENCH_|^- Not the default/m);
  });
});

describe('formatResults', () => {
  const [results, counts] = tablesOf(formatResults(conditions, report));

  it('has one row for each result, with both floors and their ratios', () => {
    expect(results?.columns).toEqual(COLUMNS);
    expect(results?.rows).toEqual([
      [
        ...['append', 'append to a new stream', '8', '1,235/s', '2.50 ms', '12.3 ms', '2 %'],
        ...['1,500/s', '0.82', '5 %', '2,469/s', '0.50', '14 %', '≥ 0.80', 'met'],
      ],
      [
        ...['round-trip', 'POST to first text (p50)', '1', '1,235/s', '2.50 ms', '12.3 ms', '20 %'],
        ...['', '', '', '2.50 ms', '1.00', '0 %', '', 'no result'],
      ],
    ]);
  });

  it('has one row for each count', () => {
    expect(counts?.columns).toEqual(COUNT_COLUMNS);
    expect(counts?.rows).toEqual([
      [
        ...['accepted Thread', '1', '200', '1.0', '1.0', '2.3'],
        ...['3,000 out, 100 in', '200 out, 50 in', '400 out, 900 in', '1.23 ms', '', '0.50 ms', '0.01 ms'],
      ],
    ]);
  });

  it('states the conditions, and warns that a tiny size has no valid figures', () => {
    const text = formatResults(conditions, report);
    expect(text).toContain('- Commit: abc123\n');
    expect(text).toContain('- Versions: PostgreSQL 15.20, Redis 7.0.15, Node v20.20.0\n');
    expect(text).toContain('- Rounds: 5 × 3 s\n');
    expect(formatResults({ ...conditions, size: 'tiny' }, report)).toContain(
      'BENCH_SIZE=tiny: no figure means anything',
    );
  });
});

describe('replaceResults', () => {
  it('replaces the text between the markers and nothing else', () => {
    const once = replaceResults(PAGE, 'first');
    const twice = replaceResults(once, 'second');
    expect(generatedPart(twice)).toBe('second');
    expect(replaceResults(twice, generatedPart(PAGE))).toBe(PAGE);
  });

  it('throws for a page without markers', () => {
    expect(() => replaceResults('# Benchmarks', 'x')).toThrow('Generated by');
  });
});
