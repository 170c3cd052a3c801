/**
 * Runs one night part at full length, and writes its row and its tables into docs/reliability.md: `npm run test:night -- PART`.
 * Without a part it lists the parts, the oldest result first. `--oldest` prints only the first of these lines.
 *
 * A failed part writes its row too. Otherwise the page would still show an older success.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseRows, replaceRow, replaceTable } from './night-page.mjs';
import { NIGHT_PARTS } from './night-parts.mjs';
import { root } from './platforms.mjs';

const page = join(root, 'docs', 'reliability.md');
const NEVER = 'never';

const [argument] = process.argv.slice(2);
if (argument === undefined) console.log(partsByAge().join('\n'));
else if (argument === '--oldest') console.log(`The oldest night part: ${partsByAge()[0]}`);
else process.exitCode = runPart(argument);

/** Returns one line for each part: first the parts that never ran, then the others by date. */
function partsByAge() {
  const rows = new Map(parseRows(readFileSync(page, 'utf8')).map((row) => [row.part, row]));
  const ageOf = (part) => rows.get(part)?.date ?? '';
  return Object.keys(NIGHT_PARTS)
    .toSorted((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1))
    .map((part) => {
      const row = rows.get(part);
      const last = row === undefined ? NEVER : `${row.date}, commit ${row.commit}, ${row.result}`;
      return `${part} (${NIGHT_PARTS[part].what}): ${last}`;
    });
}

/** Returns the exit status. */
function runPart(name) {
  const part = NIGHT_PARTS[name];
  if (part === undefined) {
    console.error(`Unknown part "${name}"; choose one of: ${Object.keys(NIGHT_PARTS).join(', ')}`);
    return 2;
  }
  const folder = mkdtempSync(join(tmpdir(), 'spool-night-'));
  try {
    const commit = describeCommit();
    const startedAt = Date.now();
    const [report, figures, tables] = ['report.json', 'figures', 'tables'].map((entry) => join(folder, entry));
    mkdirSync(tables);
    const { status } = spawnSync(process.execPath, programOf(part, report), {
      cwd: root,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, ...part.env, SPOOL_LONG: '1', SPOOL_FIGURES_FILE: figures, SPOOL_TABLES_FOLDER: tables },
    });
    const minutes = ((Date.now() - startedAt) / 60_000).toFixed(1);
    const date = new Date(startedAt).toISOString().slice(0, 10);
    const row = {
      part: name,
      what: part.what,
      result: `${describeResult(part, report, status)}, ${minutes} min`,
      figures: existsSync(figures) ? readFileSync(figures, 'utf8').split('\n').filter(Boolean) : [],
      commit,
      date,
    };
    writeFileSync(page, replaceRow(readFileSync(page, 'utf8'), row));
    // The tables of a failed part are not whole.
    for (const table of status === 0 ? readdirSync(tables) : []) {
      const text = readFileSync(join(tables, table), 'utf8');
      writeFileSync(page, replaceTable(readFileSync(page, 'utf8'), { name: table, text, commit, date }));
    }
    console.log(`${name}: ${row.result}; written to docs/reliability.md`);
    return status ?? 1;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns Node's arguments. Spec files run one after the other, because many of them measure. */
function programOf({ bench, script, args = [], nightOnly = [], long = [] }, report) {
  if (bench !== undefined) return ['--enable-source-maps', join(root, 'dist', 'bench', 'main.js'), bench];
  const options = ['--json', `--outputFile=${report}`];
  if (script !== undefined) return [join(root, 'scripts', script), ...args, ...options];
  const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
  return [
    jest,
    '--no-watchman',
    '--maxWorkers=1',
    ...[...nightOnly, ...long].map((pattern) => `--testPathPatterns=${pattern}`),
    ...options,
  ];
}

/** Returns the counts of tests. Adds FAILED if a test failed, if no test passed, or if Jest failed without a failed test. */
function describeResult({ bench }, report, status) {
  if (bench !== undefined) return status === 0 ? 'measured' : 'FAILED';
  if (!existsSync(report)) return 'FAILED: no test ran';
  const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(report, 'utf8'));
  const skipped = numPendingTests > 0 ? `, ${numPendingTests} skipped` : '';
  return `${status === 0 && numPassedTests > 0 ? '' : 'FAILED: '}${numPassedTests} passed, ${numFailedTests} failed${skipped}`;
}

/** Returns the tested commit. Ignores changes of the page, because earlier parts wrote to it. */
function describeCommit() {
  const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout.trim();
  const isDirty = git('status', '--porcelain', '--', '.', ':!docs/reliability.md') !== '';
  return `${git('rev-parse', '--short', 'HEAD')}${isDirty ? ' and changes' : ''}`;
}
