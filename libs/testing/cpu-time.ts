import { readdirSync, readFileSync } from 'node:fs';
import { extraFaultMs } from './main-thread.mjs';

/** The unit of CPU time. Linux uses hundredths of a second on every architecture that Node supports. */
const MS_PER_TICK = 10;

interface ProcessStat {
  parent: number;
  /** CPU time of the process, and of its ended children. */
  ownMs: number;
  endedChildrenMs: number;
  /** Page faults of the process that needed no disk. */
  faults: number;
}

/** Returns the CPU time of one process so far. Milliseconds. */
export function cpuOf(pid: number): number {
  return readStat(pid).ownMs;
}

/** Returns the CPU time of one process so far, with page faults that cost what they cost on a usual machine. Milliseconds. */
export function usualCpuOf(pid: number): number {
  const { ownMs, faults } = readStat(pid);
  return ownMs - faults * extraFaultMs();
}

/** Returns the CPU time so far of a process and all its children, including ended ones. Milliseconds. */
export function cpuOfFamily(pid: number): number {
  const { ownMs, endedChildrenMs } = readStat(pid);
  let all = ownMs + endedChildrenMs;
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = tryReadStat(Number(name));
    if (stat?.parent === pid) all += stat.ownMs + stat.endedChildrenMs;
  }
  return all;
}

export function parentOf(pid: number): number {
  return readStat(pid).parent;
}

function readStat(pid: number): ProcessStat {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The program name is in parentheses and may contain any character.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const field = (number: number): number => Number(fields[number - 3]);
  return {
    parent: field(4),
    faults: field(10),
    ownMs: (field(14) + field(15)) * MS_PER_TICK,
    endedChildrenMs: (field(16) + field(17)) * MS_PER_TICK,
  };
}

/** Returns undefined if the process has ended. */
function tryReadStat(pid: number): ProcessStat | undefined {
  try {
    return readStat(pid);
  } catch {
    return undefined;
  }
}
