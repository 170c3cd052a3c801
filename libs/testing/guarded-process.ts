import { spawn, type ChildProcess } from 'node:child_process';

export interface GuardedProcess {
  /** Throws once the program has ended. */
  signal(signal: NodeJS.Signals): void;
  /** Kills the program. Resolves when it is gone, so that another can listen on its port. */
  end(): Promise<void>;
}

/**
 * Runs a program that must not outlive this process, even if this process is killed. A shell waits on a pipe that the
 * system closes with this process, and then kills the program.
 */
export async function spawnGuarded(program: string, args: string[]): Promise<GuardedProcess> {
  // Killed is not gone: on a busy machine it takes a moment, so the shell waits.
  const script = '"$@" >/dev/null 2>&1 & echo $!; read -r _; kill -9 $!; wait $!';
  const guard = spawn('/bin/sh', ['-c', script, 'sh', program, ...args], { stdio: ['pipe', 'pipe', 'ignore'] });
  const pid = await readPid(guard);
  const ended = new Promise<void>((resolve) => guard.once('exit', () => resolve()));
  return {
    signal: (signal) => process.kill(pid, signal),
    end: () => {
      guard.stdin.end();
      return ended;
    },
  };
}

function readPid(guard: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    guard.once('error', reject);
    guard.stdout!.once('data', (line: Buffer) => resolve(Number(line.toString())));
  });
}
