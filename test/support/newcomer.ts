import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const README = join(import.meta.dirname, '../../README.md');

/** Types the README's three lines, beside a running `npm start` whose data is in `.data` of that directory. */
export async function expectFirstRun(directory: string): Promise<void> {
  const script = /^\. \.data\/quickstart\.env\n[^`]+/m.exec(await readFile(README, 'utf8'))?.[0] ?? '';
  const { stdout } = await run('/bin/sh', ['-ec', script], { cwd: directory });
  expect(stdout).toContain('event: thread.event');
  expect(stdout).toContain('"type":"run.completed"');
  expect(stdout).toMatch(/"finalOutput":\{"text":"You said: Hello, Spool"/);
}

/** Where the embedded PostgreSQL keeps its data, when this is not below DATA_DIR but elsewhere (as root), by its log. */
export function embeddedDataDir(output: string): string | null {
  return /PostgreSQL keeps its data in ([^,"]+),/.exec(output)?.[1] ?? null;
}
