import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findFreePort } from '#platform';
import { eventually } from '#testing';
import { embeddedDataDir, expectFirstRun } from './support/newcomer.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..');
const isRoot = process.getuid?.() === 0;
if (!isRoot) process.stderr.write('SKIPPED: the test of a fresh clone as root, by someone who is not root.\n');

/** What a newcomer does as root, in a directory that PostgreSQL's own user cannot enter: what is committed, not what is here. */
(isRoot ? test : test.skip)('`npm ci && npm start` in a fresh clone is ready within 60 s', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'spool-clone-'));
  expect((await stat(directory)).mode & 0o777).toBe(0o700);
  const clone = join(directory, 'spool');
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, PORT: String(await findFreePort()) };
  await run('git', ['clone', '--quiet', ROOT, clone], { env });
  await run('npm', ['ci'], { cwd: clone, env, maxBuffer: 2 ** 24 });

  // A group of its own: npm starts a shell, which starts Node.
  const npm = spawn('npm', ['start'], { cwd: clone, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [npm.stdout, npm.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const exited = new Promise((resolve) => npm.once('close', (code, signal) => resolve({ code, signal })));
  try {
    const isReady = (): boolean => {
      if (output.includes('Spool is ready')) return true;
      throw new Error(`It has printed:\n${output}`);
    };
    await eventually(isReady, { what: 'npm start is ready', timeoutMs: 60_000 });
    await expectFirstRun(clone);
    npm.kill('SIGTERM');
    expect(await exited).toEqual({ code: 0, signal: null });
  } finally {
    if (npm.exitCode === null && npm.signalCode === null) process.kill(-npm.pid!, 'SIGKILL');
    const dataDir = embeddedDataDir(output);
    await Promise.all([directory, ...(dataDir ? [dataDir] : [])].map((path) => rm(path, { recursive: true })));
  }
});
