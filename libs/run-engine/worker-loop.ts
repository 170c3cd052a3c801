import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { WorkerSandbox } from '#agents';
import type { RunJob } from '#event-store';
import type { LiveBus } from '#live';
import { isDatabaseUnavailable, type Logger } from '#platform';
import { HandlerUnavailable, registerWorker, type RegisteredWorker, type RunConsumer, type RunQueue } from '#run-queue';
import type { LeaseKeeper } from './lease-keeper.ts';
import type { RunEngine } from './run-engine.ts';
import { metrics } from './metrics.ts';

/** How often an unavailable database is probed, and how long its answer may take. */
const PROBE_MS = 500;
const PROBE = { text: 'select 1', query_timeout: 2_000 };

export interface WorkerLoopOptions {
  pool: Pool;
  queue: RunQueue;
  bus: LiveBus;
  engine: RunEngine;
  leases: LeaseKeeper;
  /** The id of the worker process in claims and in the table `workers`. */
  holder: string;
  slots: number;
  /** Checks the sandbox of tool servers. Rejects with ConfigError. */
  reportSandbox?: () => Promise<WorkerSandbox>;
  /** How long steps may still run once it stops, milliseconds. */
  graceMs: number;
  logger: Logger;
}

/** `draining`: takes no job, lets steps end. `cutting`: steps are cut off and their Runs handed over. */
export type WorkerStage = 'idle' | 'running' | 'draining' | 'cutting' | 'stopped';

/** The worker of the process: takes jobs from the queue, and executes up to `slots` of them at a time. */
export class WorkerLoop {
  stage: WorkerStage = 'idle';
  private readonly executing = new Set<Promise<void>>();
  private consumer: RunConsumer | null = null;
  private registered: RegisteredWorker | null = null;
  private starting: Promise<void> | null = null;
  private stopping: Promise<void> | null = null;
  /** Resolves when the database is available again or the worker stops; null without an outage. */
  private outage: Promise<void> | null = null;
  private ignoreWakes = (): void => undefined;

  constructor(private readonly options: WorkerLoopOptions) {}

  /** The number of jobs being executed. */
  get active(): number {
    return this.executing.size;
  }

  start(): Promise<void> {
    this.starting ??= this.startTaking();
    return this.starting;
  }

  private async startTaking(): Promise<void> {
    const { pool, queue, bus, engine, leases, holder, slots, logger, reportSandbox } = this.options;
    leases.start();
    metrics.slots.set(slots);
    metrics.slotsInUse.set(0);
    this.ignoreWakes = bus.onWake((threadId, version) => engine.wake(threadId, version));
    const sandbox = reportSandbox && (await reportSandbox());
    if (sandbox) logSandbox(logger, sandbox);
    this.registered = await registerWorker(pool, { holder, slots, sandbox }, logger);
    if (this.stopping !== null) return;
    this.consumer = queue.consume((job) => this.track(this.execute(job)), slots);
    this.stage = 'running';
    logger.info({ holder, slots }, 'worker started');
  }

  /**
   * Stops in two stages. First takes no further job, lets steps end within the grace period, and hands over each Run whose step
   * has ended. Then cuts off the other steps and hands their Runs over too.
   */
  stop(): Promise<void> {
    // Also during a start, which is slow during an outage of the database. It must not take Runs afterwards.
    if (this.starting !== null) this.stopping ??= this.stopInStages();
    return this.stopping ?? Promise.resolve();
  }

  private async stopInStages(): Promise<void> {
    const { engine, leases, graceMs, logger } = this.options;
    this.stage = 'draining';
    logger.info({ active: this.active }, 'worker stopping');
    const stoppedTaking = this.consumer?.stopTaking();
    engine.drain();
    const grace = new AbortController();
    const graceOver = sleep(graceMs, undefined, { signal: grace.signal }).catch(() => undefined);
    await Promise.race([this.whenIdle(), graceOver]);
    grace.abort();
    this.stage = 'cutting';
    engine.cutSteps();
    // Bounded by the leases: a hand-over that cannot be stored ends with its lease.
    await this.whenIdle();
    this.ignoreWakes();
    await leases.stop();
    await stoppedTaking;
    await this.consumer?.close();
    await this.starting;
    await this.registered?.close();
    this.stage = 'stopped';
    logger.info('worker stopped');
  }

  /** Executes a job. Without a database, it returns the job to the queue, for workers that have one. */
  private async execute(job: RunJob): Promise<void> {
    try {
      await this.options.engine.executeJob(job);
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error;
      this.outage ??= this.untilDatabaseAnswers(error).finally(() => (this.outage = null));
      throw new HandlerUnavailable(this.outage, error);
    }
  }

  private async untilDatabaseAnswers(error: unknown): Promise<void> {
    const { pool, logger } = this.options;
    logger.warn({ err: error }, 'database unavailable; worker paused');
    let answers = false;
    while (!answers && this.stopping === null) {
      await sleep(PROBE_MS, undefined, { ref: false });
      answers = await pool.query(PROBE).then(Boolean, () => false);
    }
    if (this.stopping === null) logger.info('database available again; worker resumed');
  }

  private async track(execution: Promise<void>): Promise<void> {
    this.executing.add(execution);
    metrics.slotsInUse.inc();
    try {
      await execution;
    } finally {
      this.executing.delete(execution);
      metrics.slotsInUse.dec();
    }
  }

  private async whenIdle(): Promise<void> {
    while (this.executing.size > 0) await Promise.allSettled(this.executing);
  }
}

function logSandbox(logger: Logger, sandbox: WorkerSandbox): void {
  if (sandbox.isolation === null) return;
  const isFine = sandbox.refused === null && sandbox.warnings.length === 0;
  logger[isFine ? 'info' : 'warn'](sandbox, 'tool server sandbox checked');
}
