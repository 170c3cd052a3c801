import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { eventually } from './eventually.ts';
import { trackRunning } from './running.ts';

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A process of ours under test, run as built. */
export interface SpawnedNode {
  pid: number;
  /** All it has written so far to stdout and stderr. */
  output(): string;
  /** The first line, past or to come, that matches. Rejects when the process ends before it. */
  waitForLine(pattern: RegExp, timeoutMs?: number): Promise<RegExpExecArray>;
  /** Without waiting: SIGSTOP, SIGCONT. */
  signal(signal: NodeJS.Signals): void;
  /** Sends the signal and waits for the end. */
  kill(signal?: NodeJS.Signals): Promise<Exit>;
  exited: Promise<Exit>;
}

/** Node 20 has a flag that makes V8 optimize later. In a short-lived process the optimizer costs a third of the CPU time and hardly pays off. */
const LATER_OPTIMIZING = process.versions.node.startsWith('20.') ? ['--interrupt-budget=660000'] : [];
const NODE_FLAGS = ['--enable-source-maps', ...LATER_OPTIMIZING];

export interface SpawnOptions {
  /** Flags of Node. */
  flags?: string[];
  /**
   * The most private memory of the process, bytes (RLIMIT_DATA: writable mappings, which include untouched stacks of threads).
   * An allocation beyond it fails, which ends the process. Needs the program `prlimit`.
   */
  memoryLimit?: number;
}

/**
 * Runs a built script (`dist/apps/api/main.js`, from the root) with Node. Its environment is `env` and nothing of ours
 * but PATH, HOME and TMPDIR, so that no test depends on the shell it was started from.
 */
export function spawnNode(
  script: string,
  args: string[] = [],
  env: Record<string, string> = {},
  { flags = NODE_FLAGS, memoryLimit }: SpawnOptions = {},
): SpawnedNode {
  const path = resolve(repositoryRoot(), script);
  if (!existsSync(path)) throw new Error(`${script} is missing: npm run build`);
  const { PATH, HOME, TMPDIR } = process.env;
  const command = [process.execPath, ...flags, path, ...args];
  const [program = '', ...programArgs] = memoryLimit === undefined ? command : limited(command, memoryLimit);
  const child = spawn(program, programArgs, {
    cwd: repositoryRoot(),
    env: { PATH, HOME, TMPDIR, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const untrack = trackRunning({ what: `${script} (pid ${child.pid})`, end: () => void child.kill('SIGKILL') });
  let exit: Exit | undefined;
  // 'close', not 'exit': by then all output has come.
  const exited = new Promise<Exit>((settle, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      untrack();
      settle((exit = { code, signal }));
    });
  });

  const waitForLine = async (pattern: RegExp, timeoutMs = 15_000): Promise<RegExpExecArray> => {
    const printed = (): string => `It has printed:\n${output.slice(-4_000)}`;
    const look = (): { match: RegExpExecArray | undefined } => {
      const match = matchLine(output, pattern);
      if (match || exit) return { match };
      throw new Error(printed());
    };
    const { match } = await eventually(look, { what: `${script} prints ${String(pattern)}`, timeoutMs });
    if (match) return match;
    throw new Error(`${script} ended with ${exit?.signal ?? exit?.code} before ${String(pattern)}. ${printed()}`);
  };

  return {
    pid: child.pid!,
    output: () => output,
    waitForLine,
    signal: (signal) => void child.kill(signal),
    kill: (signal = 'SIGTERM') => {
      child.kill(signal);
      return exited;
    },
    exited,
  };
}

/**
 * Sets the soft limit only. A child of the task pool sets its own limits, which may be higher, and the hard limit cannot be
 * raised without a capability. In a cgroup Node takes half of its limit for V8's heap by itself. It does not look at RLIMIT_DATA.
 */
function limited([node = '', ...args]: string[], bytes: number): string[] {
  reportMemoryLimit();
  const heap = `--max-old-space-size=${Math.floor(bytes / 2 / 1024 ** 2)}`;
  return ['prlimit', `--data=${bytes}:`, node, heap, ...args];
}

let isTold = false;

/** Says once on stderr what a memory limit of these tests counts. */
export function reportMemoryLimit(): void {
  if (isTold) return;
  isTold = true;
  process.stderr.write(
    'memory limits: prlimit --data (no cgroup); RLIMIT_DATA counts private writable memory of each process alone\n',
  );
}

function matchLine(output: string, pattern: RegExp): RegExpExecArray | undefined {
  for (const line of output.split('\n')) {
    const match = pattern.exec(line);
    if (match) return match;
  }
  return undefined;
}

/** The same from the sources and from dist/. */
function repositoryRoot(): string {
  let directory = import.meta.dirname;
  while (!existsSync(join(directory, 'package.json'))) directory = dirname(directory);
  return directory;
}
