import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BENCHMARKS, ON_PAGE } from './benchmarks.ts';
import { generatedPart } from './page.ts';
import { COLUMNS, COUNT_COLUMNS } from './report.ts';

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
