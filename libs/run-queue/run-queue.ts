import type { Queue } from 'bullmq';
import type { RunJob } from '#event-store';

/**
 * The queue from which workers take jobs. A job is a hint: it may be lost, late or delivered many times. No Run is lost, because
 * `run_work` says which Runs are ready, and a claim checks whether the job is still current.
 */
export interface RunQueue {
  /** Adds jobs. A job that the queue holds already stays as it is. Throws within about 1 s if the queue is unavailable. */
  enqueue(jobs: readonly RunJob[]): Promise<void>;
  /**
   * Like `enqueue`, but puts the jobs at the head of the queue in the given order, and moves those that it holds already. A job
   * that a worker has taken stays taken.
   */
  enqueueAhead(jobs: readonly RunJob[]): Promise<void>;
  /** Returns the number of jobs that no worker has taken yet. Throws if the queue is unavailable. */
  waitingCount(): Promise<number>;
  /**
   * Returns whether a BullMQ tool has paused the queue; no worker takes a job then. Spool's own pause is a row (QueueControls).
   * Throws if the queue is unavailable.
   */
  isPausedByTool(): Promise<boolean>;
  /** Ends the pause of a BullMQ tool. Throws if the queue is unavailable. */
  liftToolPause(): Promise<void>;
  /** Sets the epoch marker. Returns whether an earlier call had set it. Throws if the queue is unavailable. */
  ensureEpochMarker(): Promise<boolean>;
  /**
   * Hands jobs to the handler, at most `slots` at a time, until closed. The handler also resolves if the Run fails. If it
   * throws `HandlerUnavailable`, the job goes back for other workers. After any other error the job is gone, and the dispatcher
   * enqueues the Run again.
   */
  consume(handler: (job: RunJob) => Promise<void>, slots: number): RunConsumer;
  close(): Promise<void>;
}

/** A queue that operators can inspect. */
export interface ShownRunQueue extends RunQueue {
  /** BullMQ's queue. Its jobs contain only ids. */
  readonly shown: Queue;
}

/** A consumer that shuts down in two stages. Between them, the owner of the handler lets steps end or hands their Runs over. */
export interface RunConsumer {
  /** Stops giving new jobs to the handler. */
  stopTaking(): Promise<void>;
  /** Waits for the handlers that still run, then closes the connections. */
  close(): Promise<void>;
}

/** The handler cannot process any job now. Its consumer takes no jobs until `recovered` resolves, so other consumers get them. */
export class HandlerUnavailable extends Error {
  override name = 'HandlerUnavailable';

  constructor(
    readonly recovered: Promise<void>,
    cause: unknown,
  ) {
    super('The job handler is unavailable.', { cause });
  }
}

/** The queue does not respond. Callers may ignore it, because the row in `run_work` stays ready. */
export class QueueUnavailable extends Error {
  override name = 'QueueUnavailable';

  constructor(cause?: unknown) {
    super('The queue does not answer.', { cause });
  }
}

/** Returns the id of the one job of this dispatch. The next dispatch of the Run has another job. */
export function jobIdOf({ runId, dispatch }: RunJob): string {
  return `${runId}-${dispatch}`;
}

/** Returns the most jobs that may wait: enough to keep every slot busy, but few, so a new Run does not wait long. */
export function windowOf(slots: number): number {
  return Math.max(MIN_WINDOW, 2 * slots);
}

/** The window while no worker is known. */
const MIN_WINDOW = 16;
