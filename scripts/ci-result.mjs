/**
 * The last line of .ci/run, from Jest's JSON report: `N passed, N failed[, N skipped]`. Everything that went wrong
 * without being a failed test counts as one failure each: a gate, a spec file that did not run, Jest itself.
 * Arguments: the report, Jest's exit status, the names of failed gates.
 */
import { existsSync, readFileSync } from 'node:fs';

const [reportFile, jestStatus, ...failedGates] = process.argv.slice(2);
const nothing = {
  numPassedTests: 0,
  numFailedTests: 0,
  numPendingTests: 0,
  numTodoTests: 0,
  numRuntimeErrorTestSuites: 0,
};
const report = existsSync(reportFile) ? JSON.parse(readFileSync(reportFile, 'utf8')) : nothing;

const failedByName = report.numFailedTests + report.numRuntimeErrorTestSuites + failedGates.length;
const jestFailedSilently = jestStatus !== '0' && report.numFailedTests + report.numRuntimeErrorTestSuites === 0;
const ranNothing = report.numPassedTests === 0;
const failed = failedByName + (jestFailedSilently || ranNothing ? 1 : 0);
const skipped = report.numPendingTests + report.numTodoTests;

if (failedGates.length > 0) console.log(`Failed gates: ${failedGates.join(', ')}`);
if (report.numRuntimeErrorTestSuites > 0)
  console.log(`Spec files that did not run: ${report.numRuntimeErrorTestSuites}`);
if (jestFailedSilently) console.log(`Jest ended with ${jestStatus}, and no test says why`);
console.log(`${report.numPassedTests} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
process.exitCode = failed > 0 ? 1 : 0;
