import type { RunJob } from '#event-store';
import { type Logger } from '#platform';
import { throttledWarn } from './throttled-warn.ts';
import { monotonicNow } from './monotonic-now.ts';
import type { Controls, QueueControls } from './queue-controls.ts';
import { windowOf, type RunQueue } from './run-queue.ts';
import { metrics } from './metrics.ts';

/** An offer that has not been sent by then is dropped: the dispatcher has it. */
const LIMIT_MS = 200;
const MAX_IN_FLIGHT = 1_000;
/** How old the known number of waiting jobs may be, and how old it has to be to be read again once no room is left. */
const ROOM_AGE_MS = 250;
const NO_ROOM_AGE_MS = 10;

export interface RunEnqueuerOptions {
  queue: RunQueue;
  controls: Pick<QueueControls, 'read'>;
  logger: Logger;
  now?: () => number;
}

/**
 * The fast path: offers a Run right after the commit that made it ready. Nobody waits for it, it keeps at most 1,000
 * offers in memory whatever the queue does, and every offer may be dropped.
 */
export class RunEnqueuer {
  private readonly pending: { offer: RunJob; until: number }[] = [];
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

  /** Offers not yet sent or not yet answered. */
  get inFlight(): number {
    return this.pending.length + this.sending;
  }

  /** Called when offers were dropped: a dispatcher in this process need not wait for its next look. */
  onDropped(listener: () => void): void {
    this.dropped = listener;
  }

  /** Returns at once and never throws. */
  enqueueSoon(offer: RunJob): void {
    if (this.closed || this.inFlight >= MAX_IN_FLIGHT) return this.drop(1);
    this.pending.push({ offer, until: this.now() + LIMIT_MS });
    this.flushing ??= this.flush();
  }

  /** Offers nothing more, and waits for what is under way. */
  async close(): Promise<void> {
    this.closed = true;
    this.pending.length = 0;
    await this.flushing;
  }

  /** One batch after the other: what arrives meanwhile is the next, and a queue that is silent holds up only one. */
  private async flush(): Promise<void> {
    while (this.pending.length > 0) {
      const batch = this.pending.splice(0);
      this.sending = batch.length;
      try {
        const room = await this.readRoom();
        const inTime = batch.filter(({ until }) => this.now() < until);
        const sent = inTime.slice(0, room);
        this.room -= sent.length;
        await this.options.queue.enqueue(sent.map(({ offer }) => offer));
        for (const { until } of sent) metrics.enqueueSeconds.observe((this.now() - until + LIMIT_MS) / 1_000);
        metrics.offers.inc({ path: 'fast', outcome: 'sent' }, sent.length);
        if (sent.length < batch.length) this.drop(batch.length - sent.length);
      } catch (error) {
        this.warn(error, 'enqueueing failed; the dispatcher retries');
        metrics.offers.inc({ path: 'fast', outcome: 'failed' }, batch.length);
        this.dropped();
      }
      this.sending = 0;
    }
    this.flushing = null;
  }

  private drop(offers: number): void {
    metrics.offers.inc({ path: 'fast', outcome: 'dropped' }, offers);
    this.dropped();
  }

  /** How many more jobs may wait. Nothing of ours is under way while it is read, so what we add is counted once. */
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
 * Where there is a backlog, those who come later must not pass those who wait: the dispatcher, which is fair, keeps the
 * queue fuller than this. If it does not, because its leader has just died, the fast path goes on.
 */
function fastWindow({ paused, pausedByTool, crowded, slots }: Controls): number {
  if (paused || pausedByTool) return 0;
  return crowded ? Math.ceil(windowOf(slots) / 8) : windowOf(slots);
}
