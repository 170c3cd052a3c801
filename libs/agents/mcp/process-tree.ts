import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';

/** The unit of CPU time in /proc. Linux uses hundredths of a second on every architecture that Node supports. */
const MS_PER_TICK = 10;
/** Processes that are read before the event loop turns: less than a millisecond. */
const BATCH = 32;

export interface ProcessTimes {
  pid: number;
  parent: number;
  session: number;
  /** CPU time of its own, milliseconds. */
  ownMs: number;
  /** And of its children that have ended and that it has waited for. */
  totalMs: number;
}

/** Returns the processes of the machine, as far as this process sees them. None on systems without /proc. */
export async function readProcesses(): Promise<Map<number, ProcessTimes>> {
  const names = await readdir('/proc').catch(() => []);
  const pids = names.map(Number).filter((pid) => pid > 0);
  const found = new Map<number, ProcessTimes>();
  for (const [i, pid] of pids.entries()) {
    if (i % BATCH === BATCH - 1) await setImmediate();
    const times = readTimes(pid);
    if (times !== null) found.set(pid, times);
  }
  return found;
}

function readTimes(pid: number): ProcessTimes | null {
  const text = readText(`/proc/${pid}/stat`);
  // The program name is in parentheses and may contain any character.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const field = (number: number): number => Number(fields[number - 3]);
  if (text === '') return null;
  const ownMs = (field(14) + field(15)) * MS_PER_TICK;
  return { pid, parent: field(4), session: field(6), ownMs, totalMs: ownMs + (field(16) + field(17)) * MS_PER_TICK };
}

/** Returns a process, all that it and its descendants have started, and the rest of its session. */
export function treeOf(root: number, processes: ReadonlyMap<number, ProcessTimes>): ProcessTimes[] {
  const byParent = new Map<number, ProcessTimes[]>();
  for (const times of processes.values()) byParent.set(times.parent, [...(byParent.get(times.parent) ?? []), times]);
  const isFirst = ({ pid, session }: ProcessTimes): boolean => pid === root || session === root;
  const tree = new Set([...processes.values()].filter(isFirst));
  // A set also goes through what is added meanwhile.
  for (const { pid } of tree) for (const child of byParent.get(pid) ?? []) tree.add(child);
  return [...tree];
}

/**
 * Returns memory that these processes hold for themselves: what they have allocated, shared or swapped out, but not programs
 * and files. Reads the exact amount, for which the kernel visits each page, only if a quick estimate is above `enoughBytes`:
 * the estimate counts a page once for each process that shares it.
 */
export async function memoryOf(pids: readonly number[], enoughBytes: number): Promise<number> {
  let estimate = 0;
  for (const pid of pids)
    estimate += sumFields(readText(`/proc/${pid}/status`), /^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB$/gm) ?? 0;
  if (estimate <= enoughBytes) return estimate;
  const exact = await Promise.all(pids.map(exactMemoryOf));
  return exact.reduce((sum, bytes) => sum + bytes, 0);
}

async function exactMemoryOf(pid: number): Promise<number> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'latin1').catch(() => '');
  const exact = sumFields(rollup, /^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB$/gm);
  if (exact !== null) return exact;
  return sumFields(readText(`/proc/${pid}/status`), /^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB$/gm) ?? 0;
}

function sumFields(text: string, pattern: RegExp): number | null {
  const found = [...text.matchAll(pattern)].map(([, kibibytes]) => Number(kibibytes) * 1024);
  return found.length === 0 ? null : found.reduce((sum, bytes) => sum + bytes, 0);
}

/** Returns nothing if the process has ended. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
