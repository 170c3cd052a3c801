import type { Logger } from '#platform';
import type { Claim } from './claim.ts';
import { keyOf, type HeldLease, type LeaseReport } from './lease-renewals-worker.mjs';

const LONGEST_LOOK_MS = 250;

/** Returns how often leases are checked. A stop that is late by one check must still be in time. */
export function lookEveryMs(leaseMs: number): number {
  return Math.min(LONGEST_LOOK_MS, Math.max(5, leaseMs / 40));
}

/** Renews leases beside the main thread: the lease thread, or the simulation in its place. Times are `performance.now()`. */
export interface LeaseRenewer {
  /** Calls `onReport` when there is a new report that `take` has not returned. */
  start(onReport: () => void): void;
  stop(): Promise<void>;
  hold(lease: HeldLease): void;
  release(claim: Pick<HeldLease, 'runId' | 'attempt'>): void;
  /** Shows that the main thread is not stalled. */
  beat(): void;
  /** Returns the reports since the last call, oldest first. Does not wait. */
  take(): LeaseReport[];
}

export interface LeaseKeeperOptions {
  renewer: LeaseRenewer;
  leaseMs: number;
  logger: Logger;
}

/**
 * Checks the claims of this process against the renewer's reports. Stops the work of each claim whose lease is lost or about to
 * end. The end is counted by this process's clock, from before the last successful renewal was sent. After a stall of this
 * thread longer than a lease, it stops all work, because the renewer has stopped renewing.
 */
export class LeaseKeeper {
  private readonly held = new Map<string, Set<Claim>>();
  private timer: NodeJS.Timeout | null = null;
  private lookedAt = 0;

  constructor(private readonly options: LeaseKeeperOptions) {}

  start(): void {
    if (this.timer !== null) return;
    this.lookedAt = performance.now();
    this.options.renewer.start(() => this.look());
    this.timer = setInterval(() => this.look(), this.lookEveryMs);
  }

  async stop(): Promise<void> {
    if (this.timer === null) return;
    clearInterval(this.timer);
    this.timer = null;
    await this.options.renewer.stop();
  }

  hold(claim: Claim): void {
    const { threadId } = claim.job;
    this.held.set(threadId, (this.held.get(threadId) ?? new Set()).add(claim));
    this.options.renewer.hold({ ...claim.fence, leaseUntil: claim.leaseUntil });
    // The response to the claim may have come late, and no step may begin after the end of the lease.
    this.look();
  }

  release(claim: Claim): void {
    const { threadId } = claim.job;
    const claims = this.held.get(threadId);
    claims?.delete(claim);
    if (claims?.size === 0) this.held.delete(threadId);
    this.options.renewer.release(claim.fence);
  }

  /** Returns the claims that this process works on. */
  claims(): Claim[] {
    return [...this.held.values()].flatMap((claims) => [...claims]);
  }

  claimsOf(threadId: string): Iterable<Claim> {
    return this.held.get(threadId) ?? [];
  }

  /**
   * Checks all claims, first against the reports that came during a stall. Called often, and before each append and each step,
   * because after a stall these may come before any timer.
   */
  look(): void {
    this.noticeStall();
    this.options.renewer.beat();
    for (const report of this.options.renewer.take()) this.apply(report);
    for (const claim of this.claims()) this.loseInTime(claim);
  }

  private noticeStall(): void {
    const now = performance.now();
    const stalledMs = this.timer === null ? 0 : now - this.lookedAt;
    this.lookedAt = now;
    if (stalledMs < this.options.leaseMs) return;
    const claims = this.claims();
    const about = { stalledMs: Math.round(stalledMs), claims: claims.length };
    this.options.logger.warn(about, 'process stalled for longer than a lease; stopping its runs');
    for (const claim of claims) this.lose(claim, 'unsure');
  }

  private apply(report: LeaseReport): void {
    if ('failed' in report) {
      const { failed, claims } = report;
      return this.options.logger.warn({ err: { message: failed }, claims }, 'lease renewal failed');
    }
    const { kept, gone, renewedAt } = report;
    const claims = new Map(this.claims().map((claim) => [keyOf(claim.fence), claim]));
    for (const key of gone) this.lose(claims.get(key), 'gone');
    if (renewedAt === null) return;
    for (const key of kept) {
      const claim = claims.get(key);
      if (claim) claim.leaseUntil = Math.max(claim.leaseUntil, renewedAt + this.options.leaseMs);
    }
  }

  private get lookEveryMs(): number {
    return lookEveryMs(this.options.leaseMs);
  }

  private loseInTime(claim: Claim): void {
    // The claim was lost in another way, and its work has not ended yet.
    if (claim.isLost) return this.options.renewer.release(claim.fence);
    if (performance.now() < claim.leaseUntil - 2 * this.lookEveryMs) return;
    this.options.logger.warn(claim.names, 'lease not renewed in time; stopping its run');
    this.lose(claim, 'unsure');
  }

  private lose(claim: Claim | undefined, reason: 'gone' | 'unsure'): void {
    if (claim === undefined) return;
    claim.stop(reason);
    this.options.renewer.release(claim.fence);
  }
}
