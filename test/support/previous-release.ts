import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** The release before this one: what an installation runs when it is upgraded. */
const COMMIT = '3c3018b';
const ROOT = resolve(import.meta.dirname, '../..');

/** A shallow clone does not have it. */
export function hasPreviousRelease(): boolean {
  return spawnSync('git', ['cat-file', '-e', `${COMMIT}^{commit}`], { cwd: ROOT, stdio: 'ignore' }).status === 0;
}

/**
 * A new folder with the previous release, built by its own script. Not below node_modules, where the compiler takes what it
 * finds for somebody else's.
 */
export function buildPreviousRelease(): string {
  const folder = mkdtempSync(join(tmpdir(), `spool-release-${COMMIT}-`));
  const archive = execFileSync('git', ['archive', COMMIT], { cwd: ROOT, maxBuffer: 1024 ** 3 });
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: folder, stdio: 'inherit' });
  return folder;
}
