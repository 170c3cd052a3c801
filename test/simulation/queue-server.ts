import type { RunJob } from '#event-store';
import { HandlerUnavailable, jobIdOf, QueueUnavailable, type RunConsumer, type RunQueue } from '#run-queue';
import type { Faults } from './faults.ts';
import type { Scheduler, SimulatedProcess } from './scheduler.ts';

interface Job {
  id: string;
  data: RunJob;
  /** Who works on it; null while it waits. */
  takenBy: SimulatedProcess | null;
  hiddenUntil: number;
}

interface Consumer {
  process: SimulatedProcess;
  handler: (job: RunJob) => Promise<void>;
  slots: number;
  busy: number;
  stopped: boolean;
  /** Its handler is unavailable. */
  paused: boolean;
}

export interface QueueServerOptions {
  scheduler: Scheduler;
  faults: Faults;
  trace: (what: () => string) => void;
  /** Hears how many jobs wait, whenever some were added. */
  onWaiting: (count: number) => void;
  /** Called with each job that a worker takes. */
  onTaken: (job: RunJob) => void;
}

/** As BullMQ is set: the lock of a job, and how often is looked for those whose worker is gone. */
const LOCK_MS = 3_000;
const STALLED_CHECK_MS = 1_000;

/** The queue as its clients see it, with what BullMQ promises: one job an id, redelivery of what a lost worker had taken. */
export class QueueServer {
  isUnavailable = false;
  private readonly jobs = new Map<string, Job>();
  private consumers: Consumer[] = [];
  private hasEpoch = false;
  private checking = false;

  constructor(private readonly options: QueueServerOptions) {}

  get waitingCount(): number {
    let count = 0;
    for (const { takenBy } of this.jobs.values()) if (takenBy === null) count++;
    return count;
  }

  isTaken(job: Pick<RunJob, 'runId' | 'dispatch'>): boolean {
    return (this.jobs.get(jobIdOf({ ...job, threadId: '' }))?.takenBy ?? null) !== null;
  }

  flush(): void {
    this.jobs.clear();
    this.hasEpoch = false;
  }

  comeBack(): void {
    this.isUnavailable = false;
    this.deliver();
  }

  connect(process: SimulatedProcess): RunQueue {
    return {
      enqueue: (added) => this.send(process, () => this.add(added)),
      enqueueAhead: (added) => this.send(process, () => this.addAhead(added)),
      waitingCount: () => this.send(process, () => this.waitingCount),
      isPausedByTool: () => this.send(process, () => false),
      liftToolPause: () => this.send(process, () => undefined),
      ensureEpochMarker: () =>
        this.send(process, () => {
          const kept = this.hasEpoch;
          this.hasEpoch = true;
          return kept;
        }),
      consume: (handler, slots) => this.consume(process, handler, slots),
      close: async () => undefined,
    };
  }

  private send<T>(process: SimulatedProcess, act: () => T): Promise<T> {
    const { scheduler, faults } = this.options;
    return new Promise((resolve, reject) => {
      const fail = (delayMs: number) => scheduler.after(delayMs, process, () => reject(new QueueUnavailable()));
      if (this.isUnavailable) return void fail(faults.between(0, 1_000));
      scheduler.after(faults.latency(), null, () => {
        if (this.isUnavailable) return void fail(faults.between(0, 1_000));
        const result = act();
        if (faults.strikes('queue answer lost')) return void fail(faults.between(0, 1_000));
        scheduler.after(faults.latency(), process, () => resolve(result));
      });
    });
  }

  private add(added: readonly RunJob[], deliver = true): void {
    const { faults, scheduler, trace } = this.options;
    for (const data of added) {
      const id = jobIdOf(data);
      const lost = faults.strikes('job lost');
      trace(
        () => `queue: ${data.runId} ${data.dispatch} ${lost ? 'is lost' : this.jobs.has(id) ? 'is there' : 'waits'}`,
      );
      if (lost || this.jobs.has(id)) continue;
      const hiddenUntil = faults.strikes('job late') ? scheduler.now + faults.between(10, 6_000) : 0;
      this.jobs.set(id, { id, data, takenBy: null, hiddenUntil });
      if (hiddenUntil > 0) scheduler.after(hiddenUntil - scheduler.now, null, () => this.deliver());
    }
    this.options.onWaiting(this.waitingCount);
    if (deliver) this.deliver();
  }

  private addAhead(added: readonly RunJob[]): void {
    for (const data of added.toReversed()) {
      this.add([data], false);
      const job = this.jobs.get(jobIdOf(data));
      if (job?.takenBy !== null) continue;
      const others = [...this.jobs].filter(([, other]) => other !== job);
      this.jobs.clear();
      for (const [id, other] of [[job.id, job] as const, ...others]) this.jobs.set(id, other);
    }
    this.deliver();
  }

  private consume(process: SimulatedProcess, handler: Consumer['handler'], slots: number): RunConsumer {
    const consumer = { process, handler, slots, busy: 0, stopped: false, paused: false };
    this.consumers.push(consumer);
    this.deliver();
    const stop = async (): Promise<void> => {
      consumer.stopped = true;
    };
    return { stopTaking: stop, close: stop };
  }

  private deliver(): void {
    if (this.isUnavailable) return;
    const { scheduler, faults } = this.options;
    this.consumers = this.consumers.filter(({ process, stopped }) => process.alive && !stopped);
    for (;;) {
      const free = this.consumers.filter(({ slots, busy, paused }) => busy < slots && !paused);
      const waiting = [...this.jobs.values()].filter((job) => job.takenBy === null && job.hiddenUntil <= scheduler.now);
      if (free.length === 0 || waiting.length === 0) return;
      const job = faults.strikes('job out of order') ? scheduler.random.pick(waiting) : waiting[0]!;
      const consumer = scheduler.random.pick(free);
      this.options.onTaken(job.data);
      job.takenBy = consumer.process;
      this.hand(consumer, job);
      if (faults.strikes('job doubled')) this.hand(scheduler.random.pick(free), job, faults.between(0, 500));
      if (!this.checking) this.checkStalled();
    }
  }

  private hand(consumer: Consumer, job: Job, delayMs = 0): void {
    const { scheduler, faults, trace } = this.options;
    consumer.busy++;
    const done = (): void => {
      scheduler.after(faults.latency(), null, () => {
        consumer.busy--;
        if (job.takenBy === consumer.process && this.jobs.get(job.id) === job) this.jobs.delete(job.id);
        this.deliver();
      });
    };
    scheduler.after(faults.latency() + delayMs, consumer.process, () => {
      trace(() => `${consumer.process.name}: takes ${job.data.runId} ${job.data.dispatch}`);
      consumer.handler({ ...job.data }).then(done, (error: unknown) => {
        if (error instanceof HandlerUnavailable) this.giveBack(consumer, job, error);
        done();
      });
    });
  }

  private giveBack(consumer: Consumer, job: Job, { recovered }: HandlerUnavailable): void {
    consumer.paused = true;
    void recovered.then(() => {
      consumer.paused = false;
      this.deliver();
    });
    if (job.takenBy === consumer.process) job.takenBy = null;
  }

  /** A worker that is gone, or stopped for longer than its lock, loses the job to another. */
  private checkStalled(): void {
    const { scheduler } = this.options;
    this.checking = true;
    scheduler.after(STALLED_CHECK_MS, null, () => {
      this.checking = false;
      for (const job of this.jobs.values()) {
        const { takenBy } = job;
        const isGone = takenBy !== null && (!takenBy.alive || isStopped(takenBy, scheduler.now));
        if (isGone) job.takenBy = null;
        if (takenBy !== null && !this.checking) this.checkStalled();
      }
      this.deliver();
    });
  }
}

function isStopped({ pausedSince, pausedUntil }: SimulatedProcess, now: number): boolean {
  return pausedUntil > now && pausedSince < now - LOCK_MS;
}
