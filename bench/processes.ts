import { fork, type ChildProcess } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import type { Profiler } from 'node:inspector';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';

/** The root of dist/, where the built processes are. */
const DIST = resolve(import.meta.dirname, '..');

const STOP_WITHIN_MS = 15_000;

/** A Node process of its own, measured from outside. */
export interface NodeProcess {
  name: string;
  pid: number;
  /** Puts a question to a process of ours (`answerParent`) and waits for its answer. Throws when the process ends. */
  ask<Answer>(question: unknown): Promise<Answer>;
  /** Its CPU profile over the time in which `work` runs; only of processes started to be profiled. */
  profile(work: () => Promise<unknown>): Promise<Profiler.Profile>;
  /** The end of what it has printed. */
  output(): string;
  stop(): Promise<void>;
}

const running = new Set<ChildProcess>();
process.once('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** Starts a built script, given below dist/. Its output goes to a file: reading a pipe would cost time of this process. */
export function startNode(script: string, env: Record<string, string> = {}, profiled = false): NodeProcess {
  const directory = mkdtempSync(join(tmpdir(), 'spool-bench-'));
  const outputFile = join(directory, 'output.log');
  const output = openSync(outputFile, 'a');
  const { PATH, HOME, TMPDIR } = process.env;
  const child = fork(join(DIST, script), [], {
    cwd: directory,
    env: { PATH, HOME, TMPDIR, NODE_ENV: 'production', ...env },
    stdio: ['ignore', output, output, 'ipc'],
    execArgv: profiled ? ['--import', join(DIST, 'bench/profile-on-demand.js')] : [],
  });
  closeSync(output);
  running.add(child);
  const printed = (): string => readFileSync(outputFile, 'utf8').slice(-4_000);
  let isStopping = false;
  const ended = once(child, 'exit').then(([code, signal]) => {
    running.delete(child);
    const error = new Error(`${script} ended with ${String(signal ?? code)}. It has printed:\n${printed()}`);
    // Prints the error, because the caller may be waiting for another process.
    if (!isStopping) process.stderr.write(`${error.message}\n`);
    return error;
  });
  const ask = <Answer>(question: unknown): Promise<Answer> => {
    child.send(question as object);
    const answered = once(child, 'message').then(([message]) => {
      const { answer, error } = message as { answer: Answer; error?: string };
      if (error !== undefined) throw new Error(`${script}: ${error}`);
      return answer;
    });
    return Promise.race([answered, ended.then((error) => Promise.reject(error))]);
  };
  return {
    name: basename(resolve(script, '..')),
    pid: child.pid ?? NaN,
    ask,
    profile: async (work) => {
      await ask({ profile: 'start' });
      await work();
      return JSON.parse(
        readFileSync(await ask<string>({ profile: join(directory, 'cpu.json') }), 'utf8'),
      ) as Profiler.Profile;
    },
    output: printed,
    stop: async () => {
      isStopping = true;
      child.kill('SIGTERM');
      const killer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
      await ended;
      clearTimeout(killer);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** In a child: answers what the parent asks. Ends with the parent. */
export function answerParent<Question>(answer: (question: Question) => Promise<unknown>): void {
  process.on('message', (question: Question) => {
    answer(question).then(
      (given) => process.send?.({ answer: given }),
      (error: unknown) => process.send?.({ error: error instanceof Error ? error.stack : String(error) }),
    );
  });
  process.once('disconnect', () => process.exit());
}
