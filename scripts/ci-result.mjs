/**
 * Prints the last lines of .ci/run from Jest's JSON reports: the slowest spec files, failures other than tests, and last
 * `N passed, N failed[, N skipped]`. The exit status is 1 if anything failed. Each failed gate counts as one failure. So does
 * each spec file that did not run, and each run of Jest that passed no test or failed without a failed test.
 *
 *   node scripts/ci-result.mjs --report <file> --status <n> [--report <file> --status <n>]… [--failed-gate <name>]…
 *
 * --report       a file that Jest wrote with --json --outputFile; a missing file counts as a run without tests
 * --status       the exit status of the Jest that wrote the report; one for each report, in the same order
 * --failed-gate  the name of a gate that failed
 */
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { parseArgs } from 'node:util';

/** How many of the slowest spec files are printed. */
const SLOWEST = 15;

const { values } = parseArgs({
  options: {
    report: { type: 'string', multiple: true, default: [] },
    status: { type: 'string', multiple: true, default: [] },
    'failed-gate': { type: 'string', multiple: true, default: [] },
  },
});
const failedGates = values['failed-gate'];
if (values.report.length === 0 || values.report.length !== values.status.length)
  throw new Error('Pass at least one --report, and one --status for each.');

const noTests = {
  numPassedTests: 0,
  numFailedTests: 0,
  numPendingTests: 0,
  numTodoTests: 0,
  numRuntimeErrorTestSuites: 0,
  testResults: [],
};
const reports = values.report.map((file, i) => {
  const report = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : noTests;
  const status = values.status[i];
  const failed = report.numFailedTests + report.numRuntimeErrorTestSuites;
  return {
    passed: report.numPassedTests,
    failed,
    skipped: report.numPendingTests + report.numTodoTests,
    notRun: report.numRuntimeErrorTestSuites,
    silent: failed === 0 && status !== '0' ? status : null,
    isEmpty: report.numPassedTests === 0,
    files: report.testResults.map(({ name, startTime, endTime }) => ({ name, ms: endTime - startTime })),
  };
});
const sum = (of) => reports.reduce((total, report) => total + Number(of(report)), 0);

const passed = sum((report) => report.passed);
const skipped = sum((report) => report.skipped);
const notRun = sum((report) => report.notRun);
const failed =
  sum((report) => report.failed) + sum(({ silent, isEmpty }) => silent !== null || isEmpty) + failedGates.length;

printSlowest();
if (failedGates.length > 0) console.log(`Failed gates: ${failedGates.join(', ')}`);
if (notRun > 0) console.log(`Spec files that did not run: ${notRun}`);
for (const { silent, isEmpty } of reports) {
  if (silent !== null) console.log(`Jest exited with ${silent} without a failed test`);
  else if (isEmpty) console.log('Jest ran no test');
}
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exitCode = failed > 0 ? 1 : 0;

/** Prints the slowest spec files. A file in several reports is listed once for each. */
function printSlowest() {
  const slowest = reports.flatMap(({ files }) => files).toSorted((a, b) => b.ms - a.ms);
  if (slowest.length > 0) console.log('The slowest spec files:');
  for (const { name, ms } of slowest.slice(0, SLOWEST))
    console.log(`  ${(ms / 1_000).toFixed(1).padStart(6)} s  ${relative('.', name)}`);
}
