import type { Queue } from 'bullmq';
import type { RunJob } from '#event-store';

/**
 * Where workers find Runs. It carries hints: an offer may be lost, late or delivered many times, and nothing is lost,
 * because `run_work` says what is to be offered, and a claim says whether an offer still holds.
 */
export interface RunQueue {
  /** Adds a job for each; one that the queue holds already stays as it is. Throws within about 1 s if the queue is unavailable. */
  enqueue(offers: readonly RunJob[]): Promise<void>;
  /**
   * Like `offer`, but puts the jobs at the head of the queue in the given order, and moves those that it holds already. A job
   * that a worker has taken stays taken.
   */
  enqueueAhead(offers: readonly RunJob[]): Promise<void>;
  /** Jobs that no worker has taken yet. Throws if the queue is unavailable. */
  waitingCount(): Promise<number>;
  /**
   * Returns whether a BullMQ tool has paused it; no worker takes a job then. Spool's own pause is a row (QueueControls). Throws
   * if the queue is unavailable.
   */
  isPausedByTool(): Promise<boolean>;
  /** Ends the pause of a BullMQ tool. Throws if the queue is unavailable. */
  liftToolPause(): Promise<void>;
  /** Whether the mark is still there that an earlier call has left; it is from now on. Throws if the queue is unavailable. */
  ensureEpochMarker(): Promise<boolean>;
  /**
   * Hands jobs to the handler, at most `slots` at once, until closed. The handler resolves whatever becomes of the Run. If it
   * throws `HandlerUnavailable`, the job goes back for other workers. After any other error the job is gone, and the dispatcher
   * offers the Run again.
   */
  consume(handler: (offer: RunJob) => Promise<void>, slots: number): RunConsumer;
  close(): Promise<void>;
}

/** For those who show the queue to operators, and not for those who use it. */
export interface ShownRunQueue extends RunQueue {
  /** The queue of BullMQ. Jobs hold only ids. */
  readonly shown: Queue;
}

/** Shutdown has two stages: between them the owner of the handler lets steps end, or hands their Runs back. */
export interface RunConsumer {
  /** From now on the handler gets no new job. */
  stopTaking(): Promise<void>;
  /** Waits for the handlers that still run, then lets go of the connections. */
  close(): Promise<void>;
}

/** The handler cannot work on any job now. Its consumer takes no jobs until `recovered` resolves, so others get them. */
export class HandlerUnavailable extends Error {
  override name = 'HandlerUnavailable';

  constructor(
    readonly recovered: Promise<void>,
    cause: unknown,
  ) {
    super('The job handler is unavailable.', { cause });
  }
}

/** The queue does not answer. Nobody needs to be told: the row in `run_work` stays ready. */
export class QueueUnavailable extends Error {
  override name = 'QueueUnavailable';

  constructor(cause?: unknown) {
    super('The queue does not answer.', { cause });
  }
}

/** One job a dispatch: the next dispatch of the same Run is another job, an offer made twice is not. */
export function jobIdOf({ runId, dispatch }: RunJob): string {
  return `${runId}-${dispatch}`;
}

/** The most jobs that wait in the queue: enough that no slot runs dry, few enough that nobody waits behind a crowd. */
export function windowOf(slots: number): number {
  return Math.max(MIN_WINDOW, 2 * slots);
}

/** While no worker is known yet. */
const MIN_WINDOW = 16;
