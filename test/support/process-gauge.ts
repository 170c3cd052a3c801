import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { SpawnedNode } from '#testing';

export const KB = 1024;

export interface Sample {
  /** Resident after a full garbage collection. */
  bytes: number;
  /** In use then: of what is resident, allocators keep some megabytes back, now more and now less. */
  live: number;
  /** Of its servers' clients. */
  connections: number;
  /** That keep it from ending. */
  timers: number;
}

/** What a process under test holds. Collecting garbage, it answers nobody for about 100 ms. */
export class ProcessGauge {
  /** The environment that a process needs to be measured. What it has freed goes back to the system, where that is Linux. */
  static readonly env = {
    NODE_OPTIONS: `--import ${pathToFileURL(join(import.meta.dirname, 'process-gauge.mjs')).href}`,
    MALLOC_MMAP_THRESHOLD_: String(32 * KB),
    MALLOC_TRIM_THRESHOLD_: String(32 * KB),
  };
  private samples = 0;

  constructor(private readonly process: SpawnedNode) {}

  async sample(): Promise<Sample> {
    const next = ++this.samples;
    this.process.signal('SIGUSR2');
    const pattern = new RegExp(`^sample ${next}: (\\d+) bytes, (\\d+) live, (\\d+) connections, (\\d+) timers$`);
    const [bytes = 0, live = 0, connections = 0, timers = 0] = (await this.process.waitForLine(pattern))
      .slice(1)
      .map(Number);
    return { bytes, live, connections, timers };
  }

  /** The median of three samples in a row. */
  async measure(): Promise<Sample> {
    const three = [await this.sample(), await this.sample(), await this.sample()];
    return three.toSorted((a, b) => a.bytes - b.bytes)[1]!;
  }
}
