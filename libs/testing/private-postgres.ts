import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findFreePort, startEmbeddedPostgres, type EmbeddedPostgres } from '../platform/index.ts';
import { trackRunning } from './running.ts';

/** A PostgreSQL of the caller's own, to be broken. Its durability is PostgreSQL's default. */
export interface PrivatePostgres {
  /** The URL of its database `spool`, empty at first, with the role of processes. The port stays the same. */
  url: string;
  /** The same with its superuser. `migrateInstallation` gives the other role its rights. */
  ownerUrl: string;
  port: number;
  dataDir: string;
  /** Whether its postmaster is there: with its disk full it may have given up. */
  isRunning(): Promise<boolean>;
  /** `pg_ctl stop -m immediate`: nobody is waited for and nothing is flushed, the next start replays the log. */
  stopImmediately(): Promise<void>;
  /** After `stopImmediately()`, or when it ended by itself. Resolves when it answers. */
  start(): Promise<void>;
  /** For good; its data go. */
  stop(): Promise<void>;
}

export interface PrivatePostgresOptions {
  /** Where its data are to live; without it a directory of its own. */
  dataDir?: string;
  settings?: Record<string, string>;
}

export async function startPrivatePostgres(options: PrivatePostgresOptions = {}): Promise<PrivatePostgres> {
  const parent = await mkdtemp(join(tmpdir(), 'spool-private-postgres-'));
  await chmod(parent, 0o755); // started by root, the server runs as another user, who must get in
  const dataDir = options.dataDir ?? join(parent, 'postgres');
  const port = await findFreePort();
  const begin = (): Promise<EmbeddedPostgres> =>
    startEmbeddedPostgres({ dataDir, port, settings: options.settings ?? {}, log: () => undefined });
  let server = await begin();
  let pid = await readPid(server.dataDir);
  const untrack = trackRunning({ what: `PostgreSQL on port ${port}`, end: () => signal(pid!, 'SIGQUIT') });
  const isRunning = async (): Promise<boolean> =>
    pid !== null && (await readPid(server.dataDir)) === pid && isAlive(pid);

  return {
    url: server.url,
    ownerUrl: server.ownerUrl,
    port,
    dataDir: server.dataDir,
    isRunning,
    stopImmediately: async () => {
      if (pid !== null) signal(pid, 'SIGQUIT');
      while (pid !== null && isAlive(pid)) await delay(5);
      pid = null;
    },
    start: async () => {
      server = await begin();
      pid = await readPid(server.dataDir);
    },
    stop: async () => {
      await server.stop();
      await rm(server.dataDir, { recursive: true, force: true });
      await rm(parent, { recursive: true, force: true });
      untrack();
    },
  };
}

/** The first line of postmaster.pid; null without a server. */
async function readPid(dataDir: string): Promise<number | null> {
  const text = await readFile(join(dataDir, 'pgdata', 'postmaster.pid'), 'utf8').catch(() => '');
  return parseInt(text, 10) || null;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // Gone already.
  }
}
