import type { DatabaseServer } from './database-server.ts';
import type { Faults, Incident } from './faults.ts';
import { changeALimit } from './limits.ts';
import { QUEUE_NAME } from './nodes.ts';
import type { QueueServer } from './queue-server.ts';
import type { Scheduler, SimulatedProcess } from './scheduler.ts';
import type { Tables } from './tables.ts';

export interface IncidentsOptions {
  scheduler: Scheduler;
  faults: Faults;
  tables: Tables;
  database: DatabaseServer;
  queue: QueueServer;
  /** API and worker processes that are up. */
  processes: () => SimulatedProcess[];
  crash: (process: SimulatedProcess) => void;
  shutAWorkerDown: () => void;
  trace: (what: () => string) => void;
}

/** What befalls the installation until its time is over: then everything is whole again. */
export class Incidents {
  constructor(private readonly options: IncidentsOptions) {}

  start(until: number): void {
    const { faults } = this.options;
    for (const { kind, everyMs } of faults.incidents) this.plan(kind, everyMs, until);
  }

  /** Ends all that would last longer. */
  end(): void {
    const { scheduler, queue, tables, processes } = this.options;
    for (const process of processes()) {
      scheduler.resume(process);
      process.cutOffUntil = Math.min(process.cutOffUntil, scheduler.now);
    }
    if (queue.isUnavailable) queue.comeBack();
    tables.setPause(QUEUE_NAME, false);
  }

  private plan(kind: Incident, everyMs: number, until: number): void {
    const { scheduler, faults } = this.options;
    const inMs = faults.between(0, 2 * everyMs);
    if (scheduler.now + inMs > until) return;
    scheduler.after(inMs, null, () => {
      this.happens(kind);
      this.plan(kind, everyMs, until);
    });
  }

  private happens(kind: Incident): void {
    const { scheduler, faults, database, queue, tables, crash } = this.options;
    const { random, now } = scheduler;
    const victims = this.options.processes();
    const victim = victims.length > 0 ? random.pick(victims) : undefined;
    this.options.trace(() => `*** ${kind} (${victim?.name})`);
    switch (kind) {
      case 'crash a process':
        return victim && crash(victim);
      case 'stop a process':
        return victim && scheduler.pause(victim, faults.between(100, 12_000));
      case 'cut a process off':
        if (victim) victim.cutOffUntil = now + faults.between(100, 10_000);
        return;
      case 'shut a worker down':
        return this.options.shutAWorkerDown();
      case 'restart the database':
        return database.goDown(faults.between(10, 3_000));
      case 'queue away':
        queue.isUnavailable = true;
        return void scheduler.after(faults.between(10, 5_000), null, () => queue.comeBack());
      case 'flush the queue':
        return queue.flush();
      case 'set a clock':
        if (victim) victim.wallOffset = random.pick([-3_600_000, -600_000, 0, 600_000]);
        return;
      case 'end a leader': {
        const leaders = database.leaders();
        return leaders.length > 0 ? database.end(random.pick(leaders)) : undefined;
      }
      case 'pause Runs':
        return tables.setPause(QUEUE_NAME, (tables.pauses.get(QUEUE_NAME) ?? null) === null);
      case 'change a limit': {
        const change = changeALimit(random, tables);
        this.options.trace(() => change);
      }
    }
  }
}
