import type { LiveBus, WakeListener } from '#live';
import type { Faults } from './faults.ts';
import type { Scheduler, SimulatedProcess } from './scheduler.ts';

/** Wake-ups between the processes: a process hears of its own at once, others late, twice or never. */
export class WakeNetwork {
  private readonly listeners = new Map<SimulatedProcess, Set<WakeListener>>();

  constructor(
    private readonly scheduler: Scheduler,
    private readonly faults: Faults,
  ) {}

  connect(process: SimulatedProcess): LiveBus {
    const own = new Set<WakeListener>();
    this.listeners.set(process, own);
    return {
      publish: (threadId, version) => this.publish(process, threadId, version),
      isUp: () => true,
      onWake: (listener) => {
        own.add(listener);
        return () => void own.delete(listener);
      },
      close: async () => undefined,
    };
  }

  private publish(from: SimulatedProcess, threadId: string, version: number): void {
    for (const [process, listeners] of this.listeners) {
      if (!process.alive) this.listeners.delete(process);
      const tell = (): void => listeners.forEach((listener) => listener(threadId, version));
      if (process === from) tell();
      else if (listeners.size > 0) {
        if (!this.faults.strikes('wake-up lost')) this.scheduler.after(this.faults.latency(), process, tell);
        if (this.faults.strikes('wake-up doubled')) this.scheduler.after(this.faults.between(0, 3_000), process, tell);
      }
    }
  }
}
