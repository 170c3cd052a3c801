import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AgentManifestInput } from '#agents';
import { findFreePort } from '#platform';
import { eventually } from '#testing';

const ROOT = join(import.meta.dirname, '../..');
/** A public one, which has a tool for everything. */
const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
/** Does what the public ones never do, and keeps a journal. */
const ODD = join(ROOT, 'libs/agents/mcp/odd-server.testing.mjs');

export type ToolServerInput = NonNullable<AgentManifestInput['toolServers']>[number];

/** Settings that let workers start these servers. The servers see the checkout, and write to the folder of temporary files. */
export const toolServerEnv = {
  TOOL_SERVER_COMMANDS: process.execPath,
  TOOL_SERVER_FOLDERS: `${ROOT},${tmpdir()}:rw`,
};

/** Answers as much as it may. */
const HEAVY = join(import.meta.dirname, 'heavy-server.mjs');

/** Over stdio: each agent's worker process has its own. */
export const everything: ToolServerInput = { name: 'everything', command: process.execPath, args: [EVERYTHING] };

type Program = Extract<ToolServerInput, { command: string }>;

/** The same server with a start of `ms` milliseconds, or longer while the file `holdPath` exists. */
export function slowToStart(server: Program, ms: number, holdPath = ''): Program {
  const wait = `
    import { existsSync } from 'node:fs';
    import { setTimeout as sleep } from 'node:timers/promises';
    await sleep(${ms});
    while (existsSync(${JSON.stringify(holdPath)})) await sleep(20);`;
  return {
    ...server,
    args: ['--import', `data:text/javascript,${encodeURIComponent(wait)}`, ...(server.args ?? [])],
  };
}

interface JournalEntry {
  pid: number;
  did: string;
  name?: string;
  meta?: Record<string, string>;
}

/** The odd server over stdio, what the manifest says of it, and what it noted. */
export function oddServer({ env = {}, ...more }: Partial<Extract<ToolServerInput, { command: string }>> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'spool-odd-'));
  // Servers of a worker that is root run as nobody.
  chmodSync(folder, 0o777);
  const journal = join(folder, 'journal');
  const input = {
    ...{ name: 'odd', command: process.execPath, args: [ODD, 'stdio'], env: { JOURNAL: journal, ...env } },
    ...more,
  } satisfies ToolServerInput;
  const entries = (did: string): JournalEntry[] => readJournal(journal).filter((entry) => entry.did === did);
  return { input, entries, processes: () => processesWith(`JOURNAL=${journal}`) };
}

function readJournal(journal: string): JournalEntry[] {
  if (!existsSync(journal)) return [];
  const lines = readFileSync(journal, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as JournalEntry);
}

export interface ListeningServer {
  url: string;
  close(): Promise<void>;
}

export const everythingOverHttp = (): Promise<ListeningServer> => listen([EVERYTHING, 'streamableHttp'], '/mcp');

export const oddServerOverHttp = (env: Record<string, string> = {}): Promise<ListeningServer> =>
  listen([ODD, 'http'], '/', env);

export const heavyServer: ToolServerInput = { name: 'heavy', command: process.execPath, args: [HEAVY] };

export const heavyServerOverHttp = (): Promise<ListeningServer> => listen([HEAVY, 'http'], '/');

async function listen(args: string[], path: string, env: Record<string, string> = {}): Promise<ListeningServer> {
  const port = await findFreePort();
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env['PATH'], PORT: String(port), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (output += String(piece)));
  const exited = once(child, 'exit');
  await eventually(() => /listening on port \d+/.exec(output), { what: `${args.join(' ')} listens` });
  return {
    url: `http://127.0.0.1:${port}${path}`,
    close: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** Returns the processes with a variable, because a server in a sandbox does not know its own number outside. */
function processesWith(variable: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(variable) && isRunning(pid);
    } catch {
      return false;
    }
  });
}

/** Whether a process runs, which is not a zombie. */
export function isRunning(pid: number): boolean {
  const stat = `/proc/${pid}/stat`;
  return existsSync(stat) && !/^\d+ \(.*\) Z/.test(readFileSync(stat, 'utf8'));
}
