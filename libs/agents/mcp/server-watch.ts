import { memoryOf, readProcesses, treeOf, type ProcessTimes } from './process-tree.ts';
import type { ServerLimits } from './sandbox-limits.ts';

/** How often the processes of all servers are looked at. Milliseconds. */
const PERIOD_MS = 500;

/** The processes of a tool server have together used more than they may. */
export class ServerLimitExceeded extends Error {
  override name = 'ServerLimitExceeded';
}

interface Watched {
  root: number;
  limits: ServerLimits;
  cpu: CpuCount;
  onExceeded: (error: ServerLimitExceeded, pids: readonly number[]) => void;
}

const watched = new Set<Watched>();
let timer: NodeJS.Timeout | null = null;

/**
 * Watches the process tree of a server. The kernel limits each process alone, and not what processes share. Calls `onExceeded`
 * once, with all processes of the tree, if the tree exceeds a limit. Returns a function that ends the watch.
 */
export function watchServer(root: number, limits: ServerLimits, onExceeded: Watched['onExceeded']): () => void {
  const entry = { root, limits, cpu: new CpuCount(), onExceeded };
  watched.add(entry);
  timer ??= setTimeout(() => void check(), PERIOD_MS).unref();
  return () => void watched.delete(entry);
}

/** Checks all servers on one reading of /proc, and plans the next check. */
async function check(): Promise<void> {
  try {
    const processes = await readProcesses();
    for (const entry of watched) {
      const tree = treeOf(entry.root, processes);
      const error = await exceeded(entry, tree);
      const pids = tree.map(({ pid }) => pid);
      // It may have ended meanwhile.
      if (error !== null && watched.delete(entry)) entry.onExceeded(error, pids);
    }
  } finally {
    timer = watched.size === 0 ? null : setTimeout(() => void check(), PERIOD_MS).unref();
  }
}

async function exceeded(
  { limits: { memoryBytes, cpuMs }, cpu }: Watched,
  tree: readonly ProcessTimes[],
): Promise<ServerLimitExceeded | null> {
  if (cpu.add(tree) > cpuMs) return new ServerLimitExceeded(`The tool server used ${cpuMs / 1_000} s of CPU time.`);
  const pids = tree.map(({ pid }) => pid);
  if ((await memoryOf(pids, memoryBytes)) <= memoryBytes) return null;
  return new ServerLimitExceeded(`The tool server used more than ${memoryBytes} bytes of memory.`);
}

/** Counts the CPU time of a tree whose processes come and go. */
export class CpuCount {
  private usedMs = 0;
  private totalMs = 0;
  private own = new Map<number, number>();

  /** Returns the time used so far, milliseconds. */
  add(tree: readonly ProcessTimes[]): number {
    // Misses what ended since the last time.
    const running = sum(tree, ({ pid, ownMs }) => Math.max(0, ownMs - (this.own.get(pid) ?? 0)));
    // Misses what ended and was not waited for. The sum falls then.
    const totalMs = sum(tree, (times) => times.totalMs);
    this.usedMs += Math.max(running, totalMs - this.totalMs);
    this.totalMs = totalMs;
    this.own = new Map(tree.map(({ pid, ownMs }) => [pid, ownMs]));
    return this.usedMs;
  }
}

const sum = (tree: readonly ProcessTimes[], of: (times: ProcessTimes) => number): number =>
  tree.reduce((all, times) => all + of(times), 0);
