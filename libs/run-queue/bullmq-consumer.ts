import { setTimeout as sleep } from 'node:timers/promises';
import { MetricsTime, WaitingError, Worker, type IQueueBackend, type Job, type JobProgress } from 'bullmq';
import type { RunJob } from '#event-store';
import type { BullRunQueueOptions } from './bullmq-backend.ts';
import { throttledWarn } from './throttled-warn.ts';
import { HandlerUnavailable, type RunConsumer } from './run-queue.ts';

type Jobs<C> = Worker<RunJob, void, string, IQueueBackend, JobProgress, C>;

export interface BullConsumerOptions<C> extends BullRunQueueOptions<C> {
  handler: (offer: RunJob) => Promise<void>;
  slots: number;
  onClose: () => void;
}

/**
 * A worker that died between taking a job and claiming its Run leaves the job to BullMQ's check for stalled ones: the
 * lock has to end, and then comes the next check: 5 s at most. After the claim it is the reaper that helps, by the lease.
 * A check of which BullMQ believes that it comes too soon after the one before is skipped, about one in five where only
 * one worker checks, so up to two intervals lie between checks. One that is alive but blocked for 2 s may cost a delivery
 * that loses its claim. PostgreSQL marks all active jobs at each check: with 1,000 of them that takes 14 % of a core.
 */
const LOCK_MS = 3_000; // BullMQ renews it at a quarter, for as long as the handler runs
const STALLED_CHECK_MS = 1_000;
/** A Run may lose many workers; whether it fails is decided by its retry policy. PostgreSQL keeps it as `integer`. */
const MAX_STALLED = 1_000_000_000;
/** How long an idle worker waits for news before it looks by itself, seconds. */
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
    // From here on BullMQ fetches nothing more, keeps renewing locks, and is closed when the last handler has ended.
    this.closing ??= this.worker
      .close()
      .catch((error: unknown) => this.warn(error, 'closing the queue consumer failed'));
  }

  async close(): Promise<void> {
    await this.stopTaking();
    while (this.running.size > 0) await Promise.allSettled(this.running);
    // A queue that is silent must not keep the process.
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

  /** BullMQ remembers a failed first connection to PostgreSQL for ever: then only another worker helps. */
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
    // Leaves the set as soon as it has ended: `close()` waits for the set, but not for the queue to answer.
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
