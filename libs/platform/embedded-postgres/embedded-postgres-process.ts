import { execFile, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { PostgresHome } from './embedded-postgres-home.ts';

const run = promisify(execFile);

const logRotateBytes = 5 * 1024 * 1024;

/** A postmaster: ours, or one left running by a process that is gone. */
export interface ServerProcess {
  pid: number;
  port: number;
}

/** A server that we started. Its log since the start is the only account of a failed start. */
export interface StartedServer extends ServerProcess {
  hasExited(): boolean;
  logSinceStart(): Promise<string>;
}

/** Returns an environment with a fixed locale and message language, and without PG* and LD_* variables. */
export const serverEnv = (): NodeJS.ProcessEnv => ({ PATH: process.env['PATH'], LC_ALL: 'C' });

export async function spawnServer(
  home: PostgresHome,
  port: number,
  settings: Record<string, string>,
): Promise<StartedServer> {
  const logFile = join(home.dir, 'postgres.log');
  const logStart = await rotateLog(logFile);
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  // A file, not a pipe: the server may outlive us, and must still be able to write.
  const log = openSync(logFile, 'a', 0o600);
  const child = spawn(join(home.binDir, 'postgres'), ['-D', home.pgdata, '-p', String(port), ...flags], {
    // A separate process group: Ctrl-C in the terminal reaches only us, and we stop the database after we have drained.
    detached: true,
    stdio: ['ignore', log, log],
    cwd: home.dir,
    env: serverEnv(),
    ...home.runAs,
  });
  closeSync(log);
  let exited = false;
  child.once('exit', () => (exited = true));
  await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
  child.unref();
  return {
    pid: child.pid!,
    port,
    hasExited: () => exited,
    logSinceStart: async () => (await readFile(logFile)).subarray(logStart).toString('utf8').trim(),
  };
}

async function rotateLog(logFile: string): Promise<number> {
  const size = await stat(logFile).then(
    (found) => found.size,
    () => 0,
  );
  if (size < logRotateBytes) return size;
  await rename(logFile, `${logFile}.old`);
  return 0;
}

/** Returns the postmaster that really runs on this directory, if any. Makes a stale postmaster.pid harmless. */
export async function findRunningServer(pgdata: string): Promise<ServerProcess | undefined> {
  const pidFile = join(pgdata, 'postmaster.pid');
  const lines = (await readFile(pidFile, 'utf8').catch(() => '')).split('\n');
  const [pid, port] = [Number(lines[0]), Number(lines[3])];
  if (!(pid > 0)) return undefined; // no file, or that of a single-user server, whose pid is negative
  if (await isPostmasterOf(pid, pgdata)) return { pid, port };
  // PostgreSQL ignores a dead pid, but takes any live process of its user for a postmaster and refuses to start. It
  // does ignore its parent's pid, which is ours. The file is not removed, because its last lines let PostgreSQL see
  // whether backends of the dead postmaster still hold the shared memory.
  if (isAlive(pid)) await writeFile(pidFile, [process.pid, ...lines.slice(1)].join('\n'));
  return undefined;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/**
 * Returns whether the pid belongs to the program that we start in this way, because pids are reused and zombies accept signals.
 * Reads the command line, because root in a container cannot read another user's /proc/<pid>/exe or cwd.
 */
export async function isPostmasterOf(pid: number, pgdata: string): Promise<boolean> {
  if (process.platform === 'linux') {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    return command.includes(`/postgres\0-D\0${pgdata}\0`);
  }
  const { stdout } = await run('ps', ['-ww', '-o', 'command=', '-p', String(pid)]).catch(() => ({ stdout: '' }));
  return stdout.includes(`/postgres -D ${pgdata} `);
}

/**
 * Ends a postmaster and waits until it is gone. Begins with a "fast" shutdown: open transactions are rolled back, data is
 * flushed. If that takes too long, continues with "immediate" (the next start replays the log), and finally SIGKILL.
 */
export async function endServer(
  server: ServerProcess,
  pgdata: string,
  fastTimeoutMs: number,
  log: (message: string) => void,
): Promise<void> {
  const steps: [NodeJS.Signals, number][] = [
    ['SIGINT', fastTimeoutMs],
    ['SIGQUIT', 10_000],
    ['SIGKILL', 10_000],
  ];
  for (const [signal, timeoutMs] of steps) {
    if (!(await isPostmasterOf(server.pid, pgdata))) return;
    if (signal !== 'SIGINT') log(`PostgreSQL (pid ${server.pid}) is still running; sending ${signal}`);
    signalServer(server.pid, signal);
    signalServer(server.pid, 'SIGCONT'); // a stopped process gets no other signal
    const deadline = Date.now() + timeoutMs;
    while (Date.now() < deadline) {
      if (!(await isPostmasterOf(server.pid, pgdata))) return;
      await delay(10);
    }
  }
  throw new Error(`PostgreSQL (pid ${server.pid}) cannot be stopped`);
}

/** Sends a signal. Safe in an exit handler: synchronous, and ignores a server that is already gone. */
export function signalServer(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
