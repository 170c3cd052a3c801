import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { SpawnedNode } from './spawn-node.ts';

/** Delays of an event loop, milliseconds. */
export interface Delays {
  samples: number;
  p99: number;
  max: number;
  /** The same with what depends on the machine: the time in which the kernel ran others, and the extra time of page faults. */
  withMachine: { p99: number; max: number };
}

/** How late the timers of a process are: for how long it did not look at what else had come. */
export class LoopDelay {
  /** The environment that a process needs to be measured. */
  static readonly env = {
    NODE_OPTIONS: `--import ${pathToFileURL(join(import.meta.dirname, 'loop-delay.mjs')).href}`,
  };
  private reports = 0;

  constructor(private readonly process: SpawnedNode) {}

  /** Returns the delays while the work went on. */
  async during(work: () => Promise<void>): Promise<Delays> {
    await this.report();
    await work();
    return this.report();
  }

  private async report(): Promise<Delays> {
    const next = ++this.reports;
    this.process.signal('SIGUSR2');
    const line = await this.process.waitForLine(
      new RegExp(`^loop ${next}: (\\d+) (\\S+) (\\S+) (\\S+) (\\S+)$`),
      60_000,
    );
    const [samples = 0, p99 = 0, max = 0, machineP99 = 0, machineMax = 0] = line.slice(1).map(Number);
    return { samples, p99, max, withMachine: { p99: machineP99, max: machineMax } };
  }
}
