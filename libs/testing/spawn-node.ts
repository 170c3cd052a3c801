import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { eventually } from './eventually.ts';
import { limitMemory, type MemoryLimit } from './memory-limit.ts';
import { trackRunning } from './running.ts';

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A process of ours under test, run as built. */
export interface SpawnedNode {
  /** The script. */
  name: string;
  pid: number;
  /** The kind and the size of its memory limit. */
  memoryLimit?: string;
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
  /** Default: none. */
  memoryLimit?: MemoryLimit;
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
  const limited = memoryLimit && limitMemory(command, memoryLimit);
  const [program = '', ...programArgs] = limited ? [limited.program, ...limited.args] : command;
  const child = spawn(program, programArgs, {
    cwd: repositoryRoot(),
    env: { PATH, HOME, TMPDIR, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const end = (): void => {
    child.kill('SIGKILL');
    limited?.removeNow();
  };
  const untrack = trackRunning({ what: `${script} (pid ${child.pid})`, end });
  let exit: Exit | undefined;
  // 'close', not 'exit': by then all output has come.
  const closed = new Promise<Exit>((settle, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => settle({ code, signal }));
  });
  const exited = closed.finally(untrack).then(async (ended) => {
    await limited?.remove();
    return (exit = ended);
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
    name: script,
    pid: child.pid!,
    ...(limited && { memoryLimit: limited.text }),
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
