import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const ROOT = resolve(import.meta.dirname, '../..');
/** The folder of built releases, by commit. It is in `dist/`, which all source checks ignore. */
const CACHE = join(ROOT, 'dist/previous-release');
/** Files that neither the release's processes nor `fake-provider-preload.ts` need. */
const LEFT_OUT = ['*.spec.ts', 'bench', 'docs', 'examples'].map((path) => `:!${path}`);

/** The previous release, which an installation runs before its upgrade. */
export interface PreviousRelease {
  version: string;
  commit: string;
}

export function previousRelease(): PreviousRelease {
  return JSON.parse(readFileSync(join(ROOT, 'previous-release.json'), 'utf8')) as PreviousRelease;
}

/** Returns whether the clone contains the commit. A shallow clone does not. */
export function hasCommit(commit: string): boolean {
  return spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: ROOT, stdio: 'ignore' }).status === 0;
}

/**
 * Returns the environment that loads the harness of `FakeProvider`: the release's own preload, which fits its modules. Release
 * 0.1.0 has it as `outside-preload`.
 */
export function preloadOf(folder: string): Record<string, string> {
  return { NODE_OPTIONS: `--import ${pathToFileURL(join(folder, 'dist/test/support/outside-preload.js')).href}` };
}

/** Returns the folder of the built release. Builds it once per clone. */
export function buildRelease({ commit }: PreviousRelease): string {
  const folder = join(CACHE, commit);
  if (existsSync(folder)) return folder;
  mkdirSync(CACHE, { recursive: true });
  const unfinished = mkdtempSync(join(CACHE, 'unfinished-'));
  try {
    buildInto(unfinished, commit);
    renameSync(unfinished, folder);
  } catch (error) {
    // Another process may have built it meanwhile.
    if (!existsSync(folder)) throw error;
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return folder;
}

/** Options of the compiler. Only checks need packages and their types: without them it emits the same, in less time. */
const EMIT_ONLY = { noCheck: true, noResolve: true, types: [] };

/** Builds the release with its own script, without the console and type checks. The release has passed both. */
function buildInto(folder: string, commit: string): void {
  const archive = execFileSync('git', ['archive', commit, '--', '.', ...LEFT_OUT], { cwd: ROOT, maxBuffer: 1024 ** 3 });
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const config = join(folder, 'tsconfig.json');
  const { compilerOptions, ...rest } = JSON.parse(readFileSync(config, 'utf8')) as { compilerOptions: object };
  writeFileSync(config, JSON.stringify({ ...rest, compilerOptions: { ...compilerOptions, ...EMIT_ONLY } }));
  // Prevents the script from building the console: this page is newer than the console's sources.
  const page = join(folder, 'dist/apps/console');
  mkdirSync(page, { recursive: true });
  writeFileSync(join(page, 'index.html'), '');
  execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: folder, stdio: 'inherit' });
}
