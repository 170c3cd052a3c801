import type { FailureKind } from './call-failed.ts';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createLogger, openOutbound } from '#platform';
import { eventually } from '#testing';
import { allowing } from '../allowances.testing.ts';
import type { RunContext, Tool, ToolContext } from '../harness.ts';
import { agentManifestSchema, type AgentManifestInput } from '../manifest.ts';
import { roomWithoutEnd } from '../room.testing.ts';
import { McpServers, type McpServersOptions } from './mcp-servers.ts';
import { ToolSandbox, type SandboxOptions } from './sandbox.ts';

export const MODULES = resolve(import.meta.dirname, '../../../node_modules');
export const EVERYTHING = join(MODULES, '@modelcontextprotocol/server-everything/dist/index.js');
const ODD = join(import.meta.dirname, 'odd-server.testing.mjs');

type ServerInput = NonNullable<AgentManifestInput['toolServers']>[number];

/** What is open, closed by `closeAll`. */
const opened: (() => Promise<unknown>)[] = [];

export async function closeAll(): Promise<void> {
  await Promise.all(opened.splice(0).map((close) => close()));
}

/** The real one: servers see the checkout, and may write to the folder for temporary files. */
export const testSandbox = (more: Partial<SandboxOptions> = {}): ToolSandbox =>
  new ToolSandbox({
    isolation: 'bubblewrap',
    user: null,
    folders: [
      { path: resolve(import.meta.dirname, '../../..'), writable: false },
      { path: tmpdir(), writable: true },
    ],
    hidden: [],
    ownFolders: [],
    memoryBytes: 1024 * 1024 * 1024,
    ...more,
  });

/** A pool, and all that it has logged. Whoever starts one closes it. */
export function startServers(options: Partial<McpServersOptions> = {}) {
  let log = '';
  const outbound = openOutbound({ allowed: '127.0.0.1' });
  const logger = createLogger('debug', 'test', { write: (line) => void (log += line) });
  const { allowances = allowing({}), sandbox = testSandbox(), ...more } = options;
  const commands = [process.execPath, ...allowances.commands];
  const given = { allowances: { ...allowances, commands }, sandbox };
  const noteWarnings = () => Promise.resolve();
  const servers = new McpServers({ fetch: outbound.fetch, logger, noteWarnings, ...given, ...more });
  const close = async (): Promise<void> => {
    await servers.close();
    await outbound.close();
  };
  return { servers, log: () => log, close };
}

/** The same until the end of the test. */
export function openServers(options: Partial<McpServersOptions> = {}) {
  const started = startServers(options);
  opened.push(started.close);
  return started;
}

export function contextOf(toolServers: ServerInput[], more: Partial<RunContext> = {}): RunContext {
  return {
    agentId: 'agent-1',
    threadId: 'thread-1',
    runId: 'run-1',
    attempt: 1,
    userId: 'user-1',
    manifest: agentManifestSchema.parse({ name: 'Test', harness: { name: 'model' }, toolServers }),
    runTask: () => Promise.reject(new Error('there is no task pool')),
    openHold: roomWithoutEnd().openHold,
    signal: new AbortController().signal,
    ...more,
  };
}

export type Saved = Parameters<ToolContext['saveArtifact']>[0] & { fileId: string };

/** Calls a tool as the engine does. */
export async function callTool(
  tools: readonly Tool[],
  name: string,
  input: Record<string, unknown> = {},
  { saved = [], ...more }: Partial<ToolContext> & { saved?: Saved[] } = {},
) {
  const tool = tools.find((entry) => entry.name === name);
  if (tool === undefined) throw new Error(`${name} is not among ${tools.map((entry) => entry.name).join(', ')}`);
  const none = (): Promise<never> => Promise.reject(new Error('there are no files'));
  return tool.execute(input, {
    ...contextOf([]),
    toolCallId: `call-${name}`,
    makeRoom: () => undefined,
    files: { list: none, read: none, write: none, remove: none },
    saveArtifact: (artifact) => {
      const fileId = `file-${saved.length + 1}`;
      saved.push({ ...artifact, fileId });
      return Promise.resolve({ fileId });
    },
    ...more,
  });
}

export interface JournalEntry {
  pid: number;
  did: string;
  name?: string;
  child?: number;
  meta?: Record<string, unknown>;
}

/** A new folder that any user may write to: servers of a worker that is root run as nobody. */
export function sharedFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'spool-mcp-'));
  chmodSync(folder, 0o777);
  return folder;
}

/** The odd server over stdio, and what it noted. */
export function oddServer({ mode = 'stdio', ...more }: { mode?: string } & Record<string, unknown> = {}) {
  const journal = join(sharedFolder(), 'journal');
  const entries = (did: string): JournalEntry[] =>
    !existsSync(journal)
      ? []
      : readFileSync(journal, 'utf8')
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line) as JournalEntry)
          .filter((entry) => entry.did === did);
  const { env = {}, ...server } = more as { env?: Record<string, unknown> };
  const input = {
    name: 'odd',
    command: process.execPath,
    args: [ODD, mode],
    env: { JOURNAL: journal, ...env },
    ...server,
  } as ServerInput;
  return { input, entries, journal, processes: () => processesWith(`JOURNAL=${journal}`) };
}

/**
 * A server process that listens: that of `script`, on a port that it is given, so that it can be there again. What ends it is
 * added to `ends`. By default the end of the test does.
 */
export async function listening(
  script: string,
  args: string[],
  env: Record<string, string>,
  port: number,
  ends: (() => Promise<unknown>)[] = opened,
) {
  const child: ChildProcess = spawn(process.execPath, [script, ...args], {
    env: { PATH: process.env['PATH'], PORT: String(port), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout?.on('data', (piece) => (output += String(piece)));
  child.stderr?.on('data', (piece) => (output += String(piece)));
  const exited = once(child, 'exit');
  const kill = (): Promise<unknown> => {
    child.kill('SIGKILL');
    return exited;
  };
  ends.push(kill);
  await eventually(() => output.includes(`listening on port ${port}`), { what: `${script} listens` });
  return { port, kill, output: () => output };
}

export const listeningOdd = (env: Record<string, string>, port: number, ends = opened) =>
  listening(ODD, ['http'], env, port, ends);

/** The processes with a variable: a server in a sandbox does not know its own number outside. */
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
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

export const childrenOf = (pid: number): string[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);

/** Returns what a call that failed in this way is expected to return: `text` exactly or as a pattern, and its cause. */
export function failedCall(type: FailureKind, text: string | RegExp, more: object = {}): object {
  const cause = expect.objectContaining({ source: 'tool_server', type, ...more }) as object;
  const matching: unknown = typeof text === 'string' ? text : expect.stringMatching(text);
  return { text: matching, isError: true, cause };
}
