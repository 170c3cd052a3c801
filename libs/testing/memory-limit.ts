import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const MEBIBYTE = 1024 * 1024;

/** The mechanisms that enforce a limit, the best first. */
export const LIMIT_KINDS = ['cgroup v2', 'cgroup v1', 'prlimit --data'] as const;
export type LimitKind = (typeof LIMIT_KINDS)[number];

/**
 * A limit on memory that the kernel enforces. A cgroup counts a process together with its children, so it gets `bytes` and
 * `children`: the size of a container, by docs/operations/run-memory.md. RLIMIT_DATA counts each process alone, so it gets
 * `bytes` and `untouched`. It is also set in a cgroup with room for children, and alone where no cgroup can be made. The spec
 * must check with `peakMemory` that the process alone stays below `bytes`.
 */
export interface MemoryLimit {
  /** For the process without its children. Half of it is for V8's heap. */
  bytes: number;
  /** For all children together, such as those of the task pool. Default: 0. */
  children?: number;
  /** For stacks of threads that are never touched (libs/task-pool/spawn-child.ts). Only RLIMIT_DATA counts them. Default: 0. */
  untouched?: number;
  /** Default: the best kind that works on this machine. */
  kind?: LimitKind;
}

/** The properties of a process that `peakMemory` reads. */
export interface LimitedProcess {
  name: string;
  pid: number;
  memoryLimit?: string;
}

export interface LimitedCommand {
  program: string;
  args: string[];
  /** The kind and the size of the limit. */
  text: string;
  /** Removes the cgroup. Call it once the process has ended. */
  remove: () => Promise<void>;
  /** The same without waiting for other work, for the end of the tests. */
  removeNow: () => void;
}

/** Returns whether limits of this kind can be set here. Makes a cgroup and starts a program in it to find out. */
export function canLimit(kind: LimitKind): boolean {
  if (kind === 'prlimit --data') return true;
  const folder = makeCgroup(kind, 64 * MEBIBYTE);
  if (folder === undefined) return false;
  const { status } = spawnSync('sh', enter(folder, ['true']));
  removeCgroupNow(folder);
  return status === 0;
}

let best: LimitKind | undefined;

/** Returns a command that starts Node with the limit from its first instruction. */
export function limitMemory([node = '', ...args]: string[], limit: MemoryLimit): LimitedCommand {
  const { bytes, children = 0, untouched = 0, kind = (best ??= LIMIT_KINDS.find(canLimit)!) } = limit;
  // In a cgroup, Node gives V8's heap the same part by default. It ignores RLIMIT_DATA.
  const command = [node, `--max-old-space-size=${Math.floor(bytes / 2 / MEBIBYTE)}`, ...args];
  const text = (more: number): string => `${kind}, ${mebibytes(bytes)}${more > 0 ? ` + ${mebibytes(more)}` : ''}`;
  // Sets only the soft limit: children set their own, and the hard limit cannot be raised without a capability.
  const alone = ['prlimit', `--data=${bytes + untouched}:`, ...command];
  if (kind === 'prlimit --data') {
    const [program = '', ...rest] = alone;
    return { program, args: rest, text: text(untouched), remove: () => Promise.resolve(), removeNow: () => undefined };
  }
  const folder = makeCgroup(kind, bytes + children);
  if (folder === undefined) throw new Error(`No ${kind} can be made.`);
  return {
    program: 'sh',
    // A cgroup with room for children does not limit the process alone.
    args: enter(folder, children > 0 ? alone : command),
    text: text(children),
    remove: () => removeCgroup(folder),
    removeNow: () => removeCgroupNow(folder),
  };
}

/** Prints the limit of the process and its peak of resident memory. Returns the peak, bytes. */
export function peakMemory({ name, pid, memoryLimit = 'none' }: LimitedProcess): number {
  const bytes = memoryOf(pid, 'VmHWM');
  process.stderr.write(`memory limit of ${name} (pid ${pid}): ${memoryLimit}; VmHWM ${mebibytes(bytes)}\n`);
  return bytes;
}

/** Returns a size from /proc/PID/status, bytes. Throws if the process has ended. */
export function memoryOf(pid: number, field: 'VmData' | 'VmHWM' | 'VmRSS' | 'RssAnon'): number {
  const [, kibibytes] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!;
  return Number(kibibytes) * 1024;
}

const mebibytes = (bytes: number): string => `${Math.round(bytes / MEBIBYTE)} MiB`;

/**
 * Returns arguments of `sh` that run the command in the cgroup. The process ends with its parent, even if the parent is killed,
 * because a clean-up that looks for processes by their cgroup would not find it.
 */
const enter = (folder: string, command: string[]): string[] => [
  ...['-c', 'echo $$ > "$0/cgroup.procs" && exec setpriv --pdeathsig KILL "$@"', folder],
  ...command,
];

/** The files of a limit. The file `swap`, which not every kernel has, prevents swapping. */
const FILES = {
  'cgroup v2': { limit: 'memory.max', swap: 'memory.swap.max', swapBytes: () => 0 },
  'cgroup v1': {
    limit: 'memory.limit_in_bytes',
    swap: 'memory.memsw.limit_in_bytes',
    swapBytes: (bytes: number) => bytes,
  },
};

/** Makes a cgroup with this limit. Returns its folder, or undefined if that is impossible. */
function makeCgroup(kind: keyof typeof FILES, bytes: number): string | undefined {
  const { limit, swap, swapBytes } = FILES[kind];
  for (const parent of parentsOf(kind)) {
    const folder = join(parent, `spool-test-${process.pid}-${randomBytes(4).toString('hex')}`);
    // The flag never creates a file, because the parent may be an ordinary folder.
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
 * Returns the folders in which a cgroup may be made. They are below the cgroup of this process, so that its limits and counters
 * include the processes that it starts. In version 2, a cgroup with processes cannot limit children; its parent usually can.
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

/** Removes a cgroup. The kernel keeps it until all its processes have ended, so this waits for that. */
async function removeCgroup(folder: string): Promise<void> {
  for (let i = 1; !isRemoved(folder, i === REMOVE_TRIES); i++) await sleep(REMOVE_EVERY_MS);
}

/** The same, for a process that ends. Blocks. */
function removeCgroupNow(folder: string): void {
  for (let i = 1; !isRemoved(folder, i === REMOVE_TRIES); i++)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, REMOVE_EVERY_MS);
}

/** Returns whether the folder is gone. Throws if it is busy at the last try. */
function isRemoved(folder: string, isLast: boolean): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return true;
    if (code !== 'EBUSY' || isLast) throw error;
    return false;
  }
}
