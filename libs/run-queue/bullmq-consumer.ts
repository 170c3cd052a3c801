import { setTimeout as sleep } from 'node:timers/promises';
import { MetricsTime, WaitingError, Worker, type IQueueBackend, type Job, type JobProgress } from 'bullmq';
import type { RunJob } from '#event-store';
import type { BullRunQueueOptions } from './bullmq-backend.ts';
import { throttledWarn } from './throttled-warn.ts';
import { HandlerUnavailable, type RunConsumer } from './run-queue.ts';

type Jobs<C> = Worker<RunJob, void, string, IQueueBackend, JobProgress, C>;

export interface BullConsumerOptions<C> extends BullRunQueueOptions<C> {
  handler: (job: RunJob) => Promise<void>;
  slots: number;
  onClose: () => void;
}

/**
 * The lock of a job. If a worker dies between taking a job and claiming its Run, BullMQ's stalled check delivers the job again
 * within 5 s: after the end of the lock and the next check. After the claim, the reaper requeues the Run when its lease ends.
 * BullMQ skips a check that seems too soon, about one in five with a single worker, so up to two intervals lie between checks.
 * A live worker that is blocked for 2 s may cause a surplus delivery, whose claim fails. PostgreSQL marks all active jobs at each
 * check: for 1,000 jobs this takes 14 % of a core.
 */
const LOCK_MS = 3_000; // BullMQ renews it after a quarter, for as long as the handler runs.
const STALLED_CHECK_MS = 1_000;
/** A Run may lose many workers; its retry policy decides whether it fails. PostgreSQL stores this as `integer`. */
const MAX_STALLED = 1_000_000_000;
/** How long an idle worker waits for a notification before it polls, seconds. */
const IDLE_LOOK_S = 5;
const RETRY_MS = 500;
const GOODBYE_MS = 2_000;

export class BullConsumer<C> implements RunConsumer {
  private readonly running = new Set<Promise<void>>();
  private readonly warn: (error: unknown, message: string) => void;
  private readonly connection: C;
  private worker: Jobs<C>;
  private stopping = false;
  private closing: Promise<void> | null = null;

  constructor(private readonly options: BullConsumerOptions<C>) {
    this.warn = throttledWarn(options.logger);
    this.connection = options.backend.connectConsumer();
    this.worker = this.start();
  }

  async stopTaking(): Promise<void> {
    this.stopping = true;
    // BullMQ takes no more jobs, keeps renewing locks, and closes when the last handler has ended.
    this.closing ??= this.worker
      .close()
      .catch((error: unknown) => this.warn(error, 'closing the queue consumer failed'));
  }

  async close(): Promise<void> {
    await this.stopTaking();
    while (this.running.size > 0) await Promise.allSettled(this.running);
    // A silent queue must not delay the exit.
    await Promise.race([this.closing, sleep(GOODBYE_MS, undefined, { ref: false })]);
    this.options.onClose();
  }

  private start(): Jobs<C> {
    const { name, backend, slots } = this.options;
    const { prefix, factory } = backend;
    const worker: Jobs<C> = new Worker(
      name,
      (job, token) => this.process(job, token),
      {
        connection: this.connection,
        ...(prefix === undefined ? {} : { prefix }),
        autorun: false,
        concurrency: slots,
        lockDuration: LOCK_MS,
        stalledInterval: STALLED_CHECK_MS,
        maxStalledCount: MAX_STALLED,
        drainDelay: IDLE_LOOK_S,
        runRetryDelay: RETRY_MS,
        metrics: { maxDataPoints: MetricsTime.ONE_HOUR },
      },
      factory,
    );
    worker.on('error', (error) => this.warn(error, 'queue consumer error'));
    void this.runWhenReady(worker);
    return worker;
  }

  /** Runs the worker once it is connected. BullMQ keeps a failed first connection to PostgreSQL forever, so it is replaced then. */
  private async runWhenReady(worker: Jobs<C>): Promise<void> {
    try {
      await worker.waitUntilReady();
      if (!this.stopping) await worker.run();
    } catch (error) {
      this.warn(error, 'queue consumer could not start; retrying');
      await worker.close(true).catch(() => undefined);
      await sleep(RETRY_MS, undefined, { ref: false });
      if (!this.stopping) this.worker = this.start();
    }
  }

  private async process(job: Job<RunJob, void>, token?: string): Promise<void> {
    // A blocking read that was under way may still bring a job.
    if (this.stopping || this.worker.isPaused()) return giveBack(job, token);
    // Leaves the set immediately: `close()` waits for the handlers, but not for the queue to respond.
    const handling = this.options.handler(job.data).finally(() => this.running.delete(handling));
    this.running.add(handling);
    try {
      await handling;
    } catch (error) {
      const isGivenBack = error instanceof HandlerUnavailable;
      this.warn(error, isGivenBack ? 'job returned to the queue' : 'job failed; re-enqueueing its run');
      if (!isGivenBack) throw error;
      void this.pauseUntil(error.recovered);
      await giveBack(job, token);
    }
  }

  private async pauseUntil(recovered: Promise<void>): Promise<void> {
    const { worker } = this;
    if (worker.isPaused()) return;
    await worker.pause(true);
    await recovered;
    if (!this.stopping) await worker.resume();
  }
}

/** Puts a job back for other workers. Always throws, because BullMQ expects that. */
async function giveBack(job: Job<RunJob, void>, token?: string): Promise<never> {
  await job.moveToWait(token);
  throw new WaitingError();
}
