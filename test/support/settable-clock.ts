import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The clock of one process under test, which can be set while it runs; what else it has of time goes on as it does. */
export class SettableClock {
  private constructor(
    private readonly directory: string,
    /** How far it is ahead of the machine's, milliseconds. */
    public offsetMs: number,
  ) {}

  static async make(offsetMs: number): Promise<SettableClock> {
    const clock = new SettableClock(await mkdtemp(join(tmpdir(), 'spool-clock-')), offsetMs);
    await clock.set(offsetMs);
    return clock;
  }

  /** The environment that a process needs to go by it. */
  get env(): Record<string, string> {
    const preload = pathToFileURL(join(import.meta.dirname, 'settable-clock.mjs')).href;
    return { NODE_OPTIONS: `--import ${preload}`, CLOCK_OFFSET_FILE: this.file };
  }

  /** Seen by the process within milliseconds. */
  async set(offsetMs: number): Promise<void> {
    this.offsetMs = offsetMs;
    const next = `${this.file}.next`;
    await writeFile(next, String(offsetMs));
    await rename(next, this.file); // whole or not at all
  }

  async remove(): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }

  private get file(): string {
    return join(this.directory, 'offset-ms');
  }
}
