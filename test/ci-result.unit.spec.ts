import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ci-result-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

let written = 0;
function write(text: string): string {
  const file = join(folder, `${written++}`);
  writeFileSync(file, text);
  return file;
}

const report = (counts: object): string =>
  write(
    JSON.stringify({
      ...{ numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, numRuntimeErrorTestSuites: 0 },
      testResults: [],
      ...counts,
    }),
  );
const missing = (): string => join(folder, 'missing');

/** Runs the script, and returns its lines and its exit status. */
function ciResult(...args: string[]) {
  const { status, stdout } = spawnSync(process.execPath, ['scripts/ci-result.mjs', ...args], { encoding: 'utf8' });
  return { status, lines: stdout.trimEnd().split('\n') };
}

it('sums the tests of several Jest reports', () => {
  const first = report({ numPassedTests: 7, numPendingTests: 1 });
  const second = report({ numPassedTests: 3, numTodoTests: 2 });
  const result = ciResult('--report', first, '--status', '0', '--report', second, '--status', '0');
  expect(result).toEqual({ status: 0, lines: ['10 passed, 0 failed, 3 skipped'] });
});

it('prints the 15 slowest spec files first', () => {
  const testResults = Array.from({ length: 16 }, (_, i) => ({
    name: `${i}.spec.ts`,
    startTime: 1_000,
    endTime: 1_100 * (i + 1),
  }));
  const { lines } = ciResult('--report', report({ numPassedTests: 16, testResults }), '--status', '0');
  expect(lines).toHaveLength(17);
  expect(lines.slice(0, 2)).toEqual(['The slowest spec files:', '    16.6 s  15.spec.ts']);
});

it('counts failed tests, spec files that did not run and failed gates', () => {
  const first = report({ numPassedTests: 7, numFailedTests: 2 });
  const second = report({ numPassedTests: 3, numRuntimeErrorTestSuites: 1 });
  const gates = ['--failed-gate', 'lint', '--failed-gate', 'build'];
  const result = ciResult('--report', first, '--status', '1', '--report', second, '--status', '1', ...gates);
  expect(result).toEqual({
    status: 1,
    lines: ['Failed gates: lint, build', 'Spec files that did not run: 1', '10 passed, 5 failed'],
  });
});

it('fails when one of two reports is missing', () => {
  const result = ciResult(
    ...['--report', report({ numPassedTests: 7 }), '--status', '0'],
    ...['--report', missing(), '--status', '0'],
  );
  expect(result).toEqual({ status: 1, lines: ['Jest ran no test', '7 passed, 1 failed'] });
});

it('fails when Jest exits with an error without a failed test', () => {
  const result = ciResult('--report', report({ numPassedTests: 7 }), '--status', '134');
  expect(result).toEqual({ status: 1, lines: ['Jest exited with 134 without a failed test', '7 passed, 1 failed'] });
});

it.each([[[]], [['--report', 'a', '--report', 'b', '--status', '0']], [['jest.json', '0']]])(
  'rejects the arguments %j without a result line',
  (args) => {
    expect(ciResult(...args)).toEqual({ status: 1, lines: [''] });
  },
);
