import { readFileSync } from 'node:fs';

/** The unit of CPU time in /proc. Linux uses hundredths of a second on every architecture that Node supports. */
const MS_PER_TICK = 10;

export interface ProcessUsage {
  /** CPU time of all threads so far. Milliseconds. */
  cpuMs: number;
  /** Resident memory. Bytes. */
  memoryBytes: number;
}

/** Returns null if the process has ended, and on systems without /proc. */
export function usageOf(pid: number): ProcessUsage | null {
  let text: string;
  let status: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    status = readFileSync(`/proc/${pid}/status`, 'latin1');
  } catch {
    return null;
  }
  // The program name is in parentheses and may contain any character.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const field = (number: number): number => Number(fields[number - 3]);
  const [, residentKibibytes = 0] = /^VmRSS:\s+(\d+) kB$/m.exec(status) ?? [];
  return { cpuMs: (field(14) + field(15)) * MS_PER_TICK, memoryBytes: Number(residentKibibytes) * 1024 };
}
