/**
 * Builds dist/: compiles, copies the SQL files and what is no TypeScript beside the compiled code, and removes what has no source any more (a
 * deleted migration must not live on in dist/). Then replaces the compiled entry points with bundles (bundle.mjs).
 * Processes run the bundles; tests and benchmarks use the compiled libs. With --if-stale it does nothing when no source is newer than the last
 * build, which takes a few milliseconds, so `npm start` can always ask.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { buildClient } from './build-client.mjs';
import { bundle } from './bundle.mjs';

const root = dirname(import.meta.dirname);
const dist = join(root, 'dist');
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
/** Written last: its time is that of the last complete build. */
const stamp = join(dist, '.built');
const sourceFolders = ['apps', 'libs', 'test', 'bench'].map((name) => join(root, name));
/** Configuration that changes what is built. */
const buildFiles = [
  'tsconfig.json',
  'package.json',
  'package-lock.json',
  'scripts/build.mjs',
  'scripts/build-client.mjs',
  'scripts/bundle.mjs',
].map((name) => join(root, name));

function* walk(path) {
  if (!existsSync(path)) return;
  yield path; // directories too: their time tells that a file was added or deleted
  if (!statSync(path).isDirectory()) return;
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.name === 'node_modules') continue;
    if (entry.isDirectory()) yield* walk(join(path, entry.name));
    else yield join(path, entry.name);
  }
}

function isStale() {
  if (!existsSync(stamp)) return true;
  const builtAt = statSync(stamp).mtimeMs;
  return [...buildFiles, ...sourceFolders].some((start) => [...walk(start)].some((p) => statSync(p).mtimeMs > builtAt));
}

/** Ends the build if the program fails. The program has printed the reason. */
async function run(program, ...args) {
  const child = spawn(process.execPath, [program, ...args], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  const [status] = await once(child, 'exit');
  if (status !== 0) process.exit(status ?? 1);
}

async function compile() {
  // The compiler's own memory must not outlive the files it remembers having written.
  if (!existsSync(stamp)) rmSync(join(dist, '.tsbuildinfo'), { force: true });
  await run(tsc, '-p', 'tsconfig.json');
}

/** The operators' page: only when a file of it is newer than what was built of it. */
async function buildConsole() {
  const page = join(root, 'apps', 'console');
  const built = join(dist, 'apps', 'console', 'index.html');
  const sources = [...walk(page), join(root, 'package.json')];
  if (existsSync(built) && sources.every((path) => statSync(path).mtimeMs <= statSync(built).mtimeMs)) return;
  const vite = join(dirname(createRequire(import.meta.url).resolve('vite/package.json')), 'bin', 'vite.js');
  await run(vite, 'build', page, '--logLevel', 'warn');
}

/** Builds the client package if one of its source files is newer than the last build of it. */
async function buildClientIfStale() {
  const sources = [...walk(join(root, 'libs/client')), join(root, 'libs/domain/reduce-thread.ts'), ...buildFiles];
  const built = join(dist, 'client', 'package.json');
  if (existsSync(built) && sources.every((path) => statSync(path).mtimeMs <= statSync(built).mtimeMs)) return;
  await buildClient((project) => run(tsc, '-p', project));
}

function copyAsIs() {
  for (const source of sourceFolders
    .flatMap((folder) => [...walk(folder)])
    .filter((path) => /\.sql$|-worker\.mjs$|\/libs\/testing\/[\w-]+\.mjs$|\/provider\/scripts\/.*\.yaml$/.test(path))) {
    const target = join(dist, relative(root, source));
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(source, target);
  }
}

function removeOrphans() {
  for (const output of sourceFolders
    .flatMap((folder) => [...walk(join(dist, relative(root, folder)))])
    .filter((path) => !path.startsWith(join(dist, 'apps', 'console')))
    .filter((path) => /\.(js|js\.map|mjs|sql|yaml)$/.test(path))) {
    const source = join(root, relative(dist, output)).replace(/\.js(\.map)?$/, '.ts');
    if (!existsSync(source)) rmSync(output);
  }
}

if (!process.argv.includes('--if-stale') || isStale()) {
  if (process.argv.includes('--if-stale')) process.stderr.write('Building; it takes about a minute.\n');
  const startedAt = new Date();
  const [writeBundles] = await Promise.all([bundle(), compile(), buildConsole(), buildClientIfStale()]);
  copyAsIs();
  removeOrphans(); // Also removes chunks of older bundles.
  writeBundles();
  // Not the present time: a file saved while the compiler ran is newer than this build.
  writeFileSync(stamp, '');
  utimesSync(stamp, startedAt, startedAt);
}
