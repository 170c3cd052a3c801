import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const MEBIBYTE = 1024 * 1024;

/** What enforces a limit: the best that this machine allows. */
export const LIMIT_KINDS = ['cgroup v2', 'cgroup v1', 'prlimit --data'] as const;
export type LimitKind = (typeof LIMIT_KINDS)[number];

/**
 * A limit on memory that the kernel enforces. A cgroup counts a process together with its children, so it gets `bytes` and
 * `children`: the size of a container, by docs/operations/run-memory.md. RLIMIT_DATA counts each process alone, so it gets
 * `bytes` and `untouched`. That the process alone stays below `bytes` is for the spec to check, by `peakMemory`.
 */
export interface MemoryLimit {
  /** Of the process without its children. Half of it is for V8's heap. */
  bytes: number;
  /** All children at once, such as those of the task pool. Default: 0. */
  children?: number;
  /** Stacks of threads that nobody touches (libs/task-pool/spawn-child.ts), which only RLIMIT_DATA counts. Default: 0. */
  untouched?: number;
  /** Default: the best. */
  kind?: LimitKind;
}

/** What of a process `peakMemory` reads. */
export interface LimitedProcess {
  name: string;
  pid: number;
  memoryLimit?: string;
}

export interface LimitedCommand {
  program: string;
  args: string[];
  /** The kind and the size. */
  text: string;
  /** To call when the process has ended. */
  remove: () => void;
}

/** Whether limits of this kind can be set here. Makes a cgroup and starts a program in it to find out. */
export function canLimit(kind: LimitKind): boolean {
  if (kind === 'prlimit --data') return true;
  const folder = makeCgroup(kind, 64 * MEBIBYTE);
  if (folder === undefined) return false;
  const { status } = spawnSync('sh', enter(folder, ['true']));
  removeCgroup(folder);
  return status === 0;
}

let best: LimitKind | undefined;

/** Returns what to start so that the Node of the command has the limit from its first instruction. */
export function limitMemory([node = '', ...args]: string[], limit: MemoryLimit): LimitedCommand {
  const { bytes, children = 0, untouched = 0, kind = (best ??= LIMIT_KINDS.find(canLimit)!) } = limit;
  // Node takes the same part of a cgroup, but does not look at RLIMIT_DATA.
  const command = [node, `--max-old-space-size=${Math.floor(bytes / 2 / MEBIBYTE)}`, ...args];
  const text = (more: number): string => `${kind}, ${mebibytes(bytes)}${more > 0 ? ` + ${mebibytes(more)}` : ''}`;
  if (kind === 'prlimit --data') {
    // Only the soft limit: children set their own, and the hard limit cannot be raised without a capability.
    const prlimit = [`--data=${bytes + untouched}:`, ...command];
    return { program: 'prlimit', args: prlimit, text: text(untouched), remove: () => undefined };
  }
  const folder = makeCgroup(kind, bytes + children);
  if (folder === undefined) throw new Error(`No ${kind} can be made.`);
  return {
    ...{ program: 'sh', args: enter(folder, command), text: text(children) },
    remove: () => removeCgroup(folder),
  };
}

/** Prints the limit of the process and the most memory that was resident, and returns the latter. Bytes. */
export function peakMemory({ name, pid, memoryLimit = 'none' }: LimitedProcess): number {
  const bytes = memoryOf(pid, 'VmHWM');
  process.stderr.write(`memory limit of ${name} (pid ${pid}): ${memoryLimit}; VmHWM ${mebibytes(bytes)}\n`);
  return bytes;
}

/** A size in /proc/PID/status, bytes. Throws if the process has ended. */
export function memoryOf(pid: number, field: 'VmData' | 'VmHWM' | 'VmRSS' | 'RssAnon'): number {
  const [, kibibytes] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!;
  return Number(kibibytes) * 1024;
}

const mebibytes = (bytes: number): string => `${Math.round(bytes / MEBIBYTE)} MiB`;

/** The process ends with its parent, also with one that is killed: nothing that looks for its cgroup would find it. */
const enter = (folder: string, command: string[]): string[] => [
  ...['-c', 'echo $$ > "$0/cgroup.procs" && exec setpriv --pdeathsig KILL "$@"', folder],
  ...command,
];

/** The files of a limit, the second for memory with swap, which not every kernel has. */
const FILES = {
  'cgroup v2': { limit: 'memory.max', swap: 'memory.swap.max', swapBytes: () => 0 },
  'cgroup v1': {
    limit: 'memory.limit_in_bytes',
    swap: 'memory.memsw.limit_in_bytes',
    swapBytes: (bytes: number) => bytes,
  },
};

let made = 0;

/** Returns its folder, or undefined if it cannot be made. */
function makeCgroup(kind: keyof typeof FILES, bytes: number): string | undefined {
  const { limit, swap, swapBytes } = FILES[kind];
  for (const parent of parentsOf(kind)) {
    const folder = join(parent, `spool-test-${process.pid}-${++made}`);
    // Never creates a file: what looks like a cgroup may be an ordinary folder.
    const set = (file: string, value: number): void => writeFileSync(join(folder, file), String(value), { flag: 'r+' });
    try {
      mkdirSync(folder);
    } catch {
      continue;
    }
    try {
      set(limit, bytes);
      if (existsSync(join(folder, swap))) set(swap, swapBytes(bytes));
      return folder;
    } catch {
      rmdirSync(folder);
    }
  }
  return undefined;
}

/**
 * Where a cgroup may be: below that of this process, so that what limits and counts this process also holds for what it starts.
 * Version 2 allows children only to a cgroup without processes, mostly the one above.
 */
function parentsOf(kind: keyof typeof FILES): string[] {
  const all = existsSync('/proc/self/cgroup') ? readFileSync('/proc/self/cgroup', 'utf8') : '';
  const [pattern, root] =
    kind === 'cgroup v2'
      ? [/^0::(\/.*)$/m, '/sys/fs/cgroup']
      : [/^\d+:(?:\S+,)?memory(?:,\S+)?:(\/.*)$/m, '/sys/fs/cgroup/memory'];
  const own = pattern.exec(all)?.[1];
  if (own === undefined || own.includes('..')) return [];
  const paths = kind === 'cgroup v2' ? new Set([own, dirname(own)]) : [own];
  return [...paths].map((path) => join(root, path));
}

const REMOVE_TRIES = 1_000;
const REMOVE_EVERY_MS = 5;

/** The kernel keeps it until all its processes are gone, children too. Waits for that, even while this process ends. */
function removeCgroup(folder: string): void {
  for (let i = 1; ; i++) {
    try {
      return rmdirSync(folder);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return;
      if (code !== 'EBUSY' || i === REMOVE_TRIES) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, REMOVE_EVERY_MS);
    }
  }
}
