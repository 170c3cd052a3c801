/** The store's count for one request. */
export interface StoreCount {
  points: number;
  /** Milliseconds until the store's window ends. */
  leftMs: number;
}

/** A request that was sent to the store and has no response yet. */
export interface Flight {
  /** The request itself, and earlier requests that this process has admitted without the store. */
  points: number;
  sentAt: number;
  /** The number of `points` already admitted. Includes the request itself once this process has admitted it. */
  admitted: number;
  isOver: boolean;
  /** The window's `settled` when the request was sent. */
  settledBefore: number;
}

/** Milliseconds; a window that ends later by more than this is another window. Clock drift may add up to 30 ms. */
const SAME_END_MS = 50;

/**
 * The window of one key as one process knows it. The store decides while it responds. Otherwise the process admits its share
 * of the budget that the store last reported as left. The next request reports to the store what was admitted.
 * The caller passes in all times, from a monotonic clock.
 */
export class RateWindow {
  /** The store's last count; 0 if it has not responded in this window. */
  private counted = 0;
  private countedAt = -Infinity;
  /** Points in the store's window for requests that this process has admitted. */
  private acknowledged = 0;
  /** Requests that this process has admitted and the store has not acknowledged. */
  private pending = 0;
  /** The part of `pending` that is not on its way to the store. */
  private owed = 0;
  /** Requests that have moved from `pending` to the store. */
  private settled = 0;
  /** The earliest and the latest time at which the window can end. */
  private endsAt: number;
  private endsBy: number;

  constructor(
    /** Requests per window. May change while the window lasts. */
    public limit: number,
    now: number,
    durationMs: number,
  ) {
    this.endsAt = this.endsBy = now + durationMs;
  }

  /** Whether the store has reported the budget as used up. Further requests can skip the store. */
  get isSpent(): boolean {
    return this.counted >= this.limit;
  }

  leftMs(now: number): number {
    return this.endsAt - now;
  }

  /** Starts a request. The caller sends `points` to the store, and reports the outcome with `acknowledge` or `fail`. */
  send(now: number): Flight {
    const admitted = this.owed;
    this.owed = 0;
    return { points: 1 + admitted, sentAt: now, admitted, isOver: false, settledBefore: this.settled };
  }

  /** Decides a request by the store's count. Returns how many are left; null if the request is refused. */
  decideByStore(flight: Flight, count: StoreCount, now: number): number | null {
    // The store may have counted these already. Assumes that it has not, because admitting too few is better than too many.
    const unsure = this.pending - flight.admitted + this.settled - flight.settledBefore;
    this.acknowledge(flight, count, now);
    const left = this.limit - count.points - Math.max(unsure, this.pending);
    if (left < 0) return null;
    this.acknowledged++;
    return left;
  }

  /** Records the store's count, even of a request that was decided without it. */
  acknowledge(flight: Flight, { points, leftMs }: StoreCount, now: number): void {
    flight.isOver = true;
    if (flight.sentAt + leftMs > this.endsBy + SAME_END_MS) this.restart(now);
    this.endsAt = flight.sentAt + leftMs;
    this.endsBy = now + leftMs;
    // Responses to concurrent requests may arrive in another order than the store counted them.
    this.counted = flight.sentAt > this.countedAt ? points : Math.max(points, this.counted);
    this.countedAt = now;
    this.pending -= flight.admitted;
    this.acknowledged += flight.admitted;
    this.settled += flight.admitted;
  }

  /** Records that the store did not respond. The store may count the request twice, but never too few. */
  fail(flight: Flight): void {
    flight.isOver = true;
    this.owed += flight.admitted;
  }

  /**
   * Decides without the store. Returns how many more this process would admit; null if it refuses.
   *
   * @param flight the request's own, if it was sent
   * @param processes how many share the budget
   */
  decideAlone(flight: Flight | null, processes: number): number | null {
    const room = Math.floor((this.limit - this.counted) / processes);
    const left = (this.counted === 0 ? Math.max(1, room) : room) - this.pending - 1;
    if (left < 0) return null;
    this.pending++;
    if (flight === null || flight.isOver) this.owed++;
    else flight.admitted++;
    return left;
  }

  /** Takes back one request. Returns whether the store has to take it back too. */
  giveBack(): boolean {
    if (this.owed > 0) {
      this.owed--;
      this.pending--;
      return false;
    }
    if (this.acknowledged > 0) this.acknowledged--;
    if (this.counted > 0) this.counted--;
    return true;
  }

  /** Starts another window. If this one has not ended, the store lost its data, so what it knew is owed again. */
  private restart(now: number): void {
    if (now < this.endsAt) {
      this.pending += this.acknowledged;
      this.owed += this.acknowledged;
    }
    this.acknowledged = 0;
    this.counted = 0;
  }
}
