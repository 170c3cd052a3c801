import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findPostgresBinaries, type RunAs } from './embedded-postgres-binaries.ts';

const run = promisify(execFile);

/** The directories and the user of one embedded server. */
export interface PostgresHome {
  /** Holds `pgdata/`, `password` and `postgres.log`. */
  dir: string;
  pgdata: string;
  binDir: string;
  runAs: RunAs;
}

/** Directories that root can write, that every user can reach and that survive a reboot, unlike /tmp. */
const sharedRoots = ['/var/lib/spool', '/var/tmp/spool'];

/**
 * Prepares the directories. PostgreSQL refuses to run as root, so under root it runs as `systemUser`. If a parent directory of
 * mode 0700 blocks that user, the data goes to a directory within reach, always the same for one `wantedDir`.
 */
export async function preparePostgresHome(
  wantedDir: string,
  systemUser: string,
  log: (message: string) => void,
): Promise<PostgresHome> {
  const wanted = await makeDirectory(wantedDir);
  if (process.getuid?.() !== 0) {
    return homeAt(wanted, {}, await findPostgresBinaries({}, () => Promise.resolve(wanted), log));
  }
  const runAs = (await ownerOfData(wanted)) ?? (await findOrCreateUser(systemUser, log));
  const dir = await chooseReachable(wanted, runAs, log);
  return homeAt(dir, runAs, await findPostgresBinaries(runAs, makeSharedRoot, log));
}

const homeAt = (dir: string, runAs: RunAs, binDir: string): PostgresHome => ({
  dir,
  pgdata: dataIn(dir),
  binDir,
  runAs,
});

const dataIn = (dir: string): string => join(dir, 'pgdata');

async function makeDirectory(path: string): Promise<string> {
  // mkdir returns the first directory that it created. Only a new directory gets this mode, independent of the umask.
  if (await mkdir(path, { recursive: true })) await chmod(path, 0o755);
  return realpath(path);
}

/** Returns the owner of existing data, so that it keeps its ordinary owner when root starts it once (`sudo npm start`). */
async function ownerOfData(dir: string): Promise<RunAs | undefined> {
  const data = await stat(dataIn(dir)).catch(() => undefined);
  return data && data.uid !== 0 ? { uid: data.uid, gid: data.gid } : undefined;
}

async function findOrCreateUser(name: string, log: (message: string) => void): Promise<RunAs> {
  const known = await lookUpUser(name);
  if (known) return known;
  const flags = ['--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin'];
  const env = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` }; // which `su` leaves out
  try {
    await run('useradd', [...flags, name], { env });
  } catch (cause) {
    if (!(await lookUpUser(name))) {
      throw new Error(
        `PostgreSQL cannot run as root, and the system user "${name}" could not be created; create it, start as another user, or set DATABASE_URL`,
        { cause },
      );
    }
  }
  log(`system user "${name}" created, because PostgreSQL cannot run as root`);
  return (await lookUpUser(name))!;
}

async function lookUpUser(name: string): Promise<RunAs | undefined> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', name]), run('id', ['-g', name])]);
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  } catch {
    return undefined;
  }
}

async function chooseReachable(wanted: string, runAs: RunAs, log: (message: string) => void): Promise<string> {
  const hash = createHash('sha256').update(wanted).digest('hex').slice(0, 16);
  const substitutes = sharedRoots.map((root) => join(root, hash));

  const used = await firstWithData([wanted, ...substitutes]);
  const canReach = await isReachable(wanted, runAs);
  if (used === wanted && !canReach) {
    // A start on a new, empty database beside the old one would be worse than an error.
    throw new Error(
      `user ${runAs.uid}, which runs PostgreSQL, cannot reach the database in ${dataIn(wanted)}; run chmod o+x on its parent directories`,
    );
  }
  if (used === wanted || (!used && canReach)) return wanted;

  const dir = used ?? join(await makeSharedRoot(), hash);
  await makeDirectory(dir);
  log(`PostgreSQL keeps its data in ${dir}, because its user cannot reach ${wanted}`);
  return dir;
}

async function firstWithData(dirs: string[]): Promise<string | undefined> {
  for (const dir of dirs) {
    const data = await stat(dataIn(dir)).catch(() => undefined);
    if (data) return dir;
  }
  return undefined;
}

/** Tries to enter the directory as that user, instead of deriving the answer from modes. */
async function isReachable(dir: string, runAs: RunAs): Promise<boolean> {
  return run('/bin/sh', ['-c', 'cd -- "$1"', 'sh', dir], { ...runAs, cwd: '/' }).then(
    () => true,
    () => false,
  );
}

async function makeSharedRoot(): Promise<string> {
  for (const root of sharedRoots) {
    const made = await makeDirectory(root).then(
      () => stat(root),
      () => undefined,
    );
    // Every user can write to /var/tmp. A directory that another user created must not supply the programs we run.
    if (made && made.uid === 0 && (made.mode & 0o022) === 0) return root;
  }
  throw new Error(`cannot create a directory for PostgreSQL (tried ${sharedRoots.join(', ')}); set DATABASE_URL`);
}
