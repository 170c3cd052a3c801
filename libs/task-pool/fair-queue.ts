/** The time constant of the decay of used time: an organization is charged for about its last minute. Milliseconds. */
const DECAY_MS = 60_000;

interface Share<Item> {
  waiting: Item[];
  /** When each of its running calls began. */
  running: number[];
  /** Decayed time that its calls used, as of `usedAt`. Milliseconds. */
  usedMs: number;
  usedAt: number;
}

export interface FairQueueOptions {
  /** The most calls of one organization that run at once. */
  maxRunning: number;
  /** The most calls of one organization that wait. */
  maxWaiting: number;
}

/**
 * Waiting calls by organization. The next turn goes to the organization whose calls used the least time in about the last
 * minute. Times are monotonic milliseconds and come in as arguments.
 */
export class FairQueue<Item> {
  private readonly shares = new Map<string, Share<Item>>();

  constructor(private readonly options: FairQueueOptions) {}

  /** Returns false if the organization's queue is full. */
  add(organizationId: string, item: Item, now: number): boolean {
    const share = this.shares.get(organizationId) ?? { waiting: [], running: [], usedMs: 0, usedAt: now };
    if (share.waiting.length >= this.options.maxWaiting) return false;
    share.waiting.push(item);
    this.shares.set(organizationId, share);
    return true;
  }

  /** Returns false if the item no longer waits. */
  remove(organizationId: string, item: Item): boolean {
    const waiting = this.shares.get(organizationId)?.waiting ?? [];
    const index = waiting.indexOf(item);
    if (index !== -1) waiting.splice(index, 1);
    return index !== -1;
  }

  /** Starts the next call, if one may run; `ended` must follow. */
  take(now: number): Item | undefined {
    let next: Share<Item> | undefined;
    let least = Infinity;
    for (const share of this.shares.values()) {
      if (share.waiting.length === 0 || share.running.length >= this.options.maxRunning) continue;
      const used = usedBy(share, now);
      if (used < least) [next, least] = [share, used];
    }
    next?.running.push(now);
    return next?.waiting.shift();
  }

  /** Charges the organization for the call that began at `startedAt`, and forgets organizations that owe nothing. */
  ended(organizationId: string, startedAt: number, now: number): void {
    const own = this.shares.get(organizationId);
    if (own === undefined) return;
    own.usedMs = usedBefore(own, now) + now - startedAt;
    own.usedAt = now;
    own.running.splice(own.running.indexOf(startedAt), 1);
    for (const [id, share] of this.shares) {
      const isIdle = share.waiting.length === 0 && share.running.length === 0;
      if (isIdle && usedBefore(share, now) < 1) this.shares.delete(id);
    }
  }

  /** Empties the queue. */
  drain(): Item[] {
    return [...this.shares.values()].flatMap(({ waiting }) => waiting.splice(0));
  }
}

const usedBefore = ({ usedMs, usedAt }: Share<unknown>, now: number): number =>
  usedMs * Math.exp((usedAt - now) / DECAY_MS);

const usedBy = (share: Share<unknown>, now: number): number =>
  share.running.reduce((sum, startedAt) => sum + now - startedAt, usedBefore(share, now));
