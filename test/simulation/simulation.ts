import type { StoredEvent } from '#domain';
import type { RunJob } from '#event-store';
import type { Logger } from '#platform';
import { quietRandom } from '../support/random.ts';
import { Callers } from './callers.ts';
import { leaders } from './database-clients.ts';
import { DatabaseServer } from './database-server.ts';
import { Faults } from './faults.ts';
import { Incidents } from './incidents.ts';
import { drawLimits, Ignorance, simulatedCatalogue } from './limits.ts';
import { WakeNetwork } from './live-bus.ts';
import { startApi, startWorker, type Api, type Site, type Worker } from './nodes.ts';
import { Oracle } from './oracle.ts';
import { QueueServer } from './queue-server.ts';
import { Scheduler, SimulatedProcess } from './scheduler.ts';
import { EPOCH_MS, simulateTime } from './simulated-time.ts';
import type { StatementLog } from './statement-log.ts';
import { must } from './stream-oracle.ts';
import { Tables, type StatementBug } from './tables.ts';
import { simulatedHarness, type GivenStep } from './tools.ts';
import { TurnOracle } from './turn-oracle.ts';

export interface SimulationOptions {
  /** Keeps what happened, in words. */
  traced?: boolean;
  /** Without faults and with more work than slots. Checks the order of turns too. */
  calm?: boolean;
  /** Planted in the statements. */
  bugs?: readonly StatementBug[];
  /** Records the database's actions. */
  record?: StatementLog;
}

export interface SimulationResult {
  seed: number;
  /** What did not hold; null where all did. */
  failure: string | null;
  trace: string[];
  steps: number;
  /** How long all took to settle once nothing went wrong any more, simulated milliseconds. */
  settledMs: number;
  runs: number;
  events: number;
  /** What happened, and how often. */
  seen: ReadonlyMap<string, number>;
}

/** What must have settled by then is stuck: losses in a row, retries and leases take some seconds each. */
const SETTLE_WITHIN_MS = 60_000;
/** The calm simulations have more work than slots, or than limits let in. Their Runs take this long one after the other. */
const A_RUN_MS = 1_000;
/** There, the Runs of the first organization take so many times as long, so that fair turns differ from fair slot-seconds. */
const SLOWNESS = 12;
/** After all has settled: what is still under way must do no harm either, and claims be let go. */
const AFTERWARDS_MS = 1_000;
const LOOK_EVERY_MS = 250;
/** How long callers act where nothing goes wrong. */
const CALM_MS = 4_000;

/** One installation, its callers and its faults, all from one seed. The same seed is the same simulation, event by event. */
export async function simulate(seed: number, options: SimulationOptions = {}): Promise<SimulationResult> {
  const simulation = new Simulation(seed, options);
  const restore = simulateTime(simulation.scheduler);
  try {
    return await simulation.run();
  } finally {
    restore();
  }
}

class Simulation {
  readonly scheduler: Scheduler;
  private readonly faults: Faults;
  private readonly tables: Tables;
  private readonly oracle = new Oracle(
    () => this.tables,
    (holder, runId, attempt) => this.believesToHold(holder, runId, attempt),
    (holder, id) => this.ignorance.excuses(this.workerOf.get(holder)!, id),
  );
  private readonly turns = new TurnOracle(
    () => this.tables,
    () => this.scheduler.now,
    (row) => this.queue.isTaken(row),
    () => this.cap(),
  );
  private readonly database: DatabaseServer;
  private readonly queue: QueueServer;
  private readonly callers: Callers;
  private readonly incidents: Incidents;
  private readonly site: Site;
  private readonly trace: string[] = [];
  private readonly apis = new Map<SimulatedProcess, Api>();
  private readonly workers = new Map<SimulatedProcess, Worker>();
  private readonly ignorance: Ignorance;
  private readonly workerOf = new Map<string, SimulatedProcess>();
  private failure: string | null = null;
  private processes = 0;
  private eventCount = 0;
  private readonly seen = new Map<string, number>();

  constructor(
    private readonly seed: number,
    private readonly options: SimulationOptions,
  ) {
    const random = quietRandom(seed);
    const scheduler = new Scheduler(random);
    this.scheduler = scheduler;
    const faults = new Faults(random);
    this.faults = faults;
    const trace = this.note;
    this.tables = new Tables({
      now: () => Math.floor(8 * (EPOCH_MS + scheduler.now)) / 8,
      bugs: new Set(options.bugs),
      onStored: (stored) => {
        this.eventCount += stored.events.length;
        stored.events.forEach((event) => this.count(nameOf(event)));
        this.check(() => this.oracle.stored(stored));
        this.turns.note();
      },
      onTouched: () => this.noteWork(),
      onDeleted: (threadId) => {
        this.count('delete');
        trace(() => `${threadId} is deleted`);
        this.check(() => this.oracle.deleted(threadId));
      },
      onOperator: options.record?.operator,
    });
    const { tables } = this;
    const ignorance = new Ignorance(scheduler);
    this.ignorance = ignorance;
    const crash = (process: SimulatedProcess): void => this.crash(process);
    const observer = options.record?.watch(tables);
    this.database = new DatabaseServer({ scheduler, tables, faults, crash, trace, observer });
    const onWaiting = (count: number): void => this.checkWindow(count);
    const onTaken = (job: RunJob): void => this.checkTurn(job);
    this.queue = new QueueServer({ scheduler, faults, trace, onWaiting, onTaken });
    const world = { onEffect: this.noteEffect, onStep: this.checkStep, slowness: this.slownessOf };
    this.site = {
      database: this.database,
      queue: this.queue,
      wakes: new WakeNetwork(scheduler, faults),
      harness: simulatedHarness(scheduler, faults, world),
      catalogueOf: (process) => simulatedCatalogue(process, { scheduler, faults, tables, ignorance }),
      // Does not draw, so that seeds that failed once stay the same simulations.
      slotsPercent: seed % 4 === 0 ? 50 : 100,
      leaseMs: random.pick([2_500, 5_000, 8_000]),
      graceMs: random.pick([200, 2_000]),
      logger: this.logger(),
    };
    const organizations = ['ORG1', 'ORG2', 'ORG3'].slice(options.calm ? 0 : random.below(3));
    drawLimits(random, tables, organizations);
    tables.addLostWorker();
    const apis = (): Api[] => [...this.apis.values()];
    this.callers = new Callers({ scheduler, faults, tables, apis, organizations, trace });
    const { database, queue } = this;
    this.incidents = new Incidents({
      ...{ scheduler, faults, tables, database, queue, crash, trace },
      processes: () => [...this.apis.keys(), ...this.workers.keys()],
      shutAWorkerDown: () => this.shutAWorkerDown(),
    });
  }

  async run(): Promise<SimulationResult> {
    const { scheduler, faults } = this;
    leaders.server = this.database;
    leaders.scheduler = scheduler;
    const { random } = scheduler;
    for (let i = 1 + random.below(2); i > 0; i--) this.startApi();
    for (let i = 2 + random.below(2); i > 0; i--) this.startWorker();
    const { calm = false } = this.options;
    const faultsUntil = calm ? CALM_MS : faults.between(700, 2_700);
    if (calm) faults.end();
    else this.incidents.start(faultsUntil);
    const pauseMs = calm ? 20 : random.pick([50, 200, 500]);
    for (let i = calm ? 5 : 1 + random.below(3); i > 0; i--) {
      const self = new SimulatedProcess(`caller ${i}`, 0);
      scheduler.after(0, self, () => void this.callers.act(self, faultsUntil, pauseMs));
    }
    const isOver = (): boolean => this.failure !== null;
    await scheduler.runUntil(faultsUntil, isOver);
    faults.end();
    this.incidents.end();
    this.note(() => '*** nothing goes wrong any more');
    await this.settle(faultsUntil);
    const settledMs = scheduler.now - faultsUntil - AFTERWARDS_MS;
    this.check(() => this.oracle.end(this.callers.records, [...this.workers.values()]));
    this.seen.set('wait for a limit', this.oracle.limits.waits);
    this.seen.set('wait without a slot', this.turns.waits);
    this.seen.set('wait far behind', this.turns.waitsFarBehind);
    const { seed, failure, trace, seen, eventCount: events } = this;
    return { seed, failure, trace, steps: scheduler.steps, settledMs, runs: this.oracle.runCount, events, seen };
  }

  /** Until all has been at rest for a while: what is still under way then must do no harm either. */
  private async settle(since: number): Promise<void> {
    const { scheduler, oracle } = this;
    let atRest = 0;
    const areCallersDone = (): boolean =>
      this.callers.records.every(({ outcome, done }) => done || outcome !== 'unknown');
    const withinMs = SETTLE_WITHIN_MS + (this.options.calm ? oracle.runCount * A_RUN_MS : 0);
    while (scheduler.now < since + withinMs && this.failure === null) {
      await scheduler.runUntil(scheduler.now + LOOK_EVERY_MS, () => this.failure !== null);
      atRest = oracle.isSettled && areCallersDone() && this.areWorkersFree() ? atRest + LOOK_EVERY_MS : 0;
      if (atRest >= AFTERWARDS_MS) return;
    }
  }

  private startApi(inMs = 0): void {
    const process = this.newProcess('api');
    this.scheduler.after(inMs, process, () => {
      this.note(() => `${process.name}: starts`);
      this.apis.set(process, startApi(this.site, process));
    });
  }

  private startWorker(inMs = 0): void {
    const process = this.newProcess('worker');
    const slots = this.scheduler.random.pick([1, 2, 4]);
    this.workerOf.set(process.name, process);
    this.scheduler.after(inMs, process, () => {
      this.note(() => `${process.name}: starts`);
      const worker = startWorker(this.site, process, slots);
      this.workers.set(process, worker);
      void worker.start();
    });
  }

  private newProcess(kind: string): SimulatedProcess {
    return new SimulatedProcess(`${kind} ${++this.processes}`, this.faults.between(0, 1_000_000));
  }

  private crash(process: SimulatedProcess): void {
    const inMs = this.faults.between(50, 3_000);
    if (this.apis.delete(process)) this.startApi(inMs);
    else if (this.workers.delete(process)) this.startWorker(inMs);
    else return;
    this.count('crash');
    this.note(() => `${process.name}: crashes`);
    this.endProcess(process);
  }

  private endProcess(process: SimulatedProcess): void {
    process.alive = false;
    this.database.forget(process);
  }

  private shutAWorkerDown(): void {
    const { scheduler } = this;
    if (this.workers.size === 0) return;
    const [process, worker] = scheduler.random.pick([...this.workers]);
    this.note(() => `${process.name}: shuts down`);
    scheduler.after(0, process, () => {
      const stopped = worker.stop();
      void stopped.then(() => {
        if (!this.workers.delete(process)) return;
        this.note(() => `${process.name}: has shut down`);
        this.check(() => must(worker.leases.claims().length === 0, `${process.name} shut down with a claim`));
        this.endProcess(process);
        this.startWorker(this.faults.between(50, 1_000));
      });
    });
  }

  private readonly slownessOf = (agentId: string): number =>
    this.options.calm && agentId.startsWith('ORG1-') ? SLOWNESS : 1;

  private readonly noteEffect = (effect: Parameters<Oracle['effect']>[0]): void => {
    this.note(() => `${this.scheduler.current!.name}: ${effect.toolName} ${effect.toolCallId} takes effect`);
    this.check(() => this.oracle.effect(effect));
  };

  private readonly checkStep = (step: GivenStep): void => this.check(() => this.oracle.step(step));

  private count(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }

  private check(look: () => void): void {
    if (this.failure !== null) return;
    try {
      look();
    } catch (error) {
      this.failure = error instanceof Error ? error.message : String(error);
      this.note(() => `BROKEN: ${this.failure}`);
    }
  }

  private areWorkersFree(): boolean {
    return [...this.workers.values()].every(
      ({ leases, enqueuer }) => leases.claims().length === 0 && enqueuer.inFlight === 0,
    );
  }

  private believesToHold(holder: string, runId: string, attempt: number): boolean {
    const worker = [...this.workers.values()].find(({ process }) => process.name === holder);
    if (worker === undefined) return false;
    const claim = worker.leases.claims().find((held) => held.job.runId === runId && held.attempt === attempt);
    return (
      claim !== undefined && !claim.isLost && claim.leaseUntil > this.scheduler.now + worker.process.monotonicOffset
    );
  }

  private noteWork(): void {
    this.oracle.noteWork();
    this.turns.note();
  }

  /** The cap of an organization, as QueueControls computes it. */
  private cap(): number | null {
    const { slotsPercent } = this.site;
    if (slotsPercent >= 100) return null;
    const workers = [...this.tables.workers.values()].filter(({ seenAt }) => seenAt > this.tables.now - 10_000);
    const slots = workers.reduce((sum, worker) => sum + worker.slots, 0);
    return Math.max(1, Math.floor((slots * slotsPercent) / 100));
  }

  /** Checks the order of turns, which is promised only without faults. */
  private checkTurn(job: RunJob): void {
    if (this.options.calm) this.check(() => this.turns.taken(job));
  }

  /** Each process may fill the window once with what it believes to know of it. */
  private checkWindow(count: number): void {
    const workers = [...this.tables.workers.values()].filter(({ seenAt }) => seenAt > this.tables.now - 60_000);
    const slots = workers.reduce((sum, worker) => sum + worker.slots, 0);
    const most = Math.max(16, 2 * slots) * (1 + this.apis.size + this.workers.size);
    this.check(() => must(count <= most, `${count} jobs wait, the window is far smaller`));
  }

  private readonly note = (what: () => string): void => {
    if (this.options.traced) this.trace.push(`${this.scheduler.now.toFixed(1).padStart(9)} ${what()}`);
  };

  /** What the product itself calls an error is one. */
  private logger(): Logger {
    const ignore = (): void => undefined;
    const error = (about: unknown, message: string): void => {
      const text = about instanceof Object && 'err' in about ? String((about as { err: unknown }).err) : '';
      this.note(() => `${this.scheduler.current?.name}: logs an error: ${message} ${text}`);
      this.check(() => must(false, `an error is logged: ${message} ${text}`));
    };
    return { debug: ignore, info: ignore, warn: ignore, error } as unknown as Logger;
  }
}

/** The event's type, with what made it where that differs. */
function nameOf({ type, data }: StoredEvent): string {
  const { reason, limit, outcome, decision, error } = data as Record<string, string> & { error?: { code: string } };
  const how = reason ?? limit ?? outcome ?? decision ?? error?.code;
  return how === undefined ? type : `${type} (${how})`;
}
