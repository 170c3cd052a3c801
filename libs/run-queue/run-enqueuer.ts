import type { RunJob } from '#event-store';
import { type Logger } from '#platform';
import { throttledWarn } from './throttled-warn.ts';
import { monotonicNow } from './monotonic-now.ts';
import type { Controls, QueueControls } from './queue-controls.ts';
import { windowOf, type RunQueue } from './run-queue.ts';
import { metrics } from './metrics.ts';

/** A job that was not sent within this time is dropped; the dispatcher enqueues its Run. */
const SEND_WITHIN_MS = 200;
const MAX_IN_FLIGHT = 1_000;
/** How long the number of waiting jobs is cached, and how long once the window is full. */
const ROOM_AGE_MS = 250;
const NO_ROOM_AGE_MS = 10;

export interface RunEnqueuerOptions {
  queue: RunQueue;
  controls: Pick<QueueControls, 'read'>;
  logger: Logger;
  now?: () => number;
}

/**
 * The fast path: enqueues a Run right after the commit that made it ready. No request waits for it. It keeps at most 1,000
 * jobs in memory, and may drop any job.
 */
export class RunEnqueuer {
  private readonly pending: { job: RunJob; until: number }[] = [];
  private readonly now: () => number;
  private readonly warn: (error: unknown, message: string) => void;
  private sending = 0;
  private flushing: Promise<void> | null = null;
  private closed = false;
  private dropped: () => void = () => undefined;
  private room = 0;
  private roomReadAt = -Infinity;

  constructor(private readonly options: RunEnqueuerOptions) {
    this.now = options.now ?? monotonicNow;
    this.warn = throttledWarn(options.logger, this.now);
  }

  /** The number of jobs that the queue has not confirmed yet. */
  get inFlight(): number {
    return this.pending.length + this.sending;
  }

  /** Sets the listener for dropped jobs. A dispatcher in this process then looks immediately. */
  onDropped(listener: () => void): void {
    this.dropped = listener;
  }

  /** Returns immediately and never throws. */
  enqueueSoon(job: RunJob): void {
    if (this.closed || this.inFlight >= MAX_IN_FLIGHT) return this.drop(1);
    this.pending.push({ job, until: this.now() + SEND_WITHIN_MS });
    this.flushing ??= this.flush();
  }

  /** Drops the jobs that were not sent yet, and waits for the batch under way. */
  async close(): Promise<void> {
    this.closed = true;
    this.pending.length = 0;
    await this.flushing;
  }

  /** Sends one batch at a time, so a queue that does not respond delays only one batch. */
  private async flush(): Promise<void> {
    while (this.pending.length > 0) {
      const batch = this.pending.splice(0);
      this.sending = batch.length;
      try {
        const room = await this.readRoom();
        const inTime = batch.filter(({ until }) => this.now() < until);
        const sent = inTime.slice(0, room);
        this.room -= sent.length;
        await this.options.queue.enqueue(sent.map(({ job }) => job));
        for (const { until } of sent) metrics.enqueueSeconds.observe((this.now() - until + SEND_WITHIN_MS) / 1_000);
        metrics.enqueues.inc({ path: 'fast', outcome: 'sent' }, sent.length);
        if (sent.length < batch.length) this.drop(batch.length - sent.length);
      } catch (error) {
        this.warn(error, 'enqueueing failed; the dispatcher retries');
        metrics.enqueues.inc({ path: 'fast', outcome: 'failed' }, batch.length);
        this.dropped();
      }
      this.sending = 0;
    }
    this.flushing = null;
  }

  private drop(count: number): void {
    metrics.enqueues.inc({ path: 'fast', outcome: 'dropped' }, count);
    this.dropped();
  }

  /** Returns how many more jobs may wait. No batch of this process is under way during the read, so each job counts once. */
  private async readRoom(): Promise<number> {
    const age = this.now() - this.roomReadAt;
    if (age < (this.room > 0 ? ROOM_AGE_MS : NO_ROOM_AGE_MS)) return this.room;
    this.roomReadAt = this.now();
    this.room = 0;
    const { queue, controls } = this.options;
    const [known, waiting] = await Promise.all([controls.read(), queue.waitingCount()]);
    this.room = Math.max(0, fastWindow(known) - waiting);
    return this.room;
  }
}

/**
 * Returns the window of the fast path. During a backlog it is smaller than what the fair dispatcher keeps in the queue, so new
 * Runs do not overtake waiting ones. If the leader has just died and the queue drains, the fast path continues.
 */
function fastWindow({ paused, pausedByTool, crowded, slots }: Controls): number {
  if (paused || pausedByTool) return 0;
  return crowded ? Math.ceil(windowOf(slots) / 8) : windowOf(slots);
}
