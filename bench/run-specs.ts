import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');

/** Selects tests that measure: by regular expressions for their file, and for their names. */
export interface MeasuringTests {
  file: string;
  tests?: string;
}

/** Runs the tests with Jest, one after the other. Their figures go to stderr. Returns whether they passed. */
export async function runSpecs({ file, tests }: MeasuringTests, env: NodeJS.ProcessEnv): Promise<boolean> {
  const named = tests === undefined ? [] : [`--testNamePattern=${tests}`];
  const options = ['--no-watchman', '--maxWorkers=1', `--testPathPatterns=${file}`, ...named];
  const jest = spawn(process.execPath, [join(ROOT, 'node_modules/jest/bin/jest.js'), ...options], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
    env,
  });
  const [status] = (await once(jest, 'exit')) as [number | null];
  return status === 0;
}
