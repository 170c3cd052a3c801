import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { Launch } from './sandbox.ts';

/** The process of a tool server. Under bubblewrap it is bubblewrap, and the server is in another session. */
export type ServerProcess = ChildProcessByStdio<Writable, Readable, Readable>;

/** The group of the server itself, where that is not the group of the process that was started. */
const inner = new WeakMap<ServerProcess, number>();

/** What bubblewrap tells of itself: `{"child-pid": …}`. */
const MAX_INFO = 4_096;

export function startServer({ file, args, piped, ...options }: Launch): ServerProcess {
  // A process group of its own.
  const common = { ...options, shell: false, detached: true };
  if (piped === null) return spawn(file, args, { ...common, stdio: ['pipe', 'pipe', 'pipe'] });
  const child = spawn(file, args, { ...common, stdio: ['pipe', 'pipe', 'pipe', 'pipe', 'pipe'] });
  const [, , , info, given] = child.stdio as unknown as [Writable, Readable, Readable, Readable, Writable];
  let told = '';
  info.on('data', (piece: Buffer) => {
    told = (told + String(piece)).slice(0, MAX_INFO);
    const [, pid] = /"child-pid": *(\d+)/.exec(told) ?? [];
    if (pid !== undefined) inner.set(child, Number(pid));
  });
  // Bubblewrap may have ended before it has read them.
  for (const stream of [info, given]) stream.on('error', () => undefined);
  given.end(piped);
  return child;
}

/** To all of it that still runs. */
export function signalServer(child: ServerProcess, signal: NodeJS.Signals): void {
  const group = inner.get(child);
  if (group !== undefined) signalGroup(group, signal);
  // Bubblewrap ends at SIGTERM, and takes everything with it at once: the server may not have ended in good order yet.
  if (group === undefined || signal === 'SIGKILL') signalGroup(child.pid, signal);
}

/** Ends a process at once, if it still runs. */
export function killProcess(pid: number): void {
  signal(pid, 'SIGKILL');
}

function signalGroup(pid: number | undefined, name: NodeJS.Signals): void {
  if (pid !== undefined) signal(-pid, name);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // There is nothing left.
  }
}
