import type { Pool } from 'pg';
import { namedStatement, type Logger } from '#platform';
import type { Claim } from './claim.ts';

const RENEW_LEASES = namedStatement(import.meta.dirname, 'renew-leases.sql');
const FIND_HELD_CLAIMS = namedStatement(import.meta.dirname, 'find-held-claims.sql');

/** A claim that is gone is noticed so soon even when no wake-up tells of it: an interrupt stops work within 2 s. */
const CHECK_EVERY_MS = 1_000;

export interface LeaseKeeperOptions {
  pool: Pool;
  /** The worker process. */
  holder: string;
  leaseMs: number;
  logger: Logger;
}

/** A claim as the database knows it. */
interface HeldClaim {
  runId: string;
  attempt: number;
}

/**
 * Keeps the leases of all claims of this process, by one statement a third of a lease, and stops the work of each whose
 * lease is lost or, because renewing fails, about to be: before its end by our own clock, counted from before the last
 * successful renewal was sent. Between renewals it looks once a second whether the claims still hold, by one read.
 */
export class LeaseKeeper {
  private readonly held = new Map<string, Set<Claim>>();
  private timer: NodeJS.Timeout | null = null;
  private nextRenewalAt = 0;
  private nextCheckAt = 0;

  constructor(private readonly options: LeaseKeeperOptions) {}

  start(): void {
    // Looks often, so that stopping late by one look is still early enough.
    this.timer ??= setInterval(() => this.look(), this.lookEveryMs);
  }

  stop(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
  }

  hold(claim: Claim): void {
    const { threadId } = claim.offer;
    this.held.set(threadId, (this.held.get(threadId) ?? new Set()).add(claim));
    // That it was made may have been learned only now: no step may begin under a lease that is over.
    this.loseInTime(claim);
  }

  release(claim: Claim): void {
    const { threadId } = claim.offer;
    const claims = this.held.get(threadId);
    claims?.delete(claim);
    if (claims?.size === 0) this.held.delete(threadId);
  }

  /** The claims under work in this process. */
  claims(): Claim[] {
    return [...this.held.values()].flatMap((claims) => [...claims]);
  }

  claimsOf(threadId: string): Iterable<Claim> {
    return this.held.get(threadId) ?? [];
  }

  /** Renews every lease now. A failure is not the end: the next try comes before the leases run out. */
  async renew(): Promise<void> {
    const { pool, holder, leaseMs, logger } = this.options;
    const claims = this.claimsAtWork();
    if (claims.length === 0) return;
    const runIds = claims.map(({ offer }) => offer.runId);
    const attempts = claims.map(({ attempt }) => attempt);
    const sentAt = performance.now();
    try {
      // A connection that hangs is given up after a third of the lease, and the next try takes another one.
      const limit = { query_timeout: leaseMs / 3 };
      const values = [holder, runIds, attempts, leaseMs];
      const { rows } = await pool.query<HeldClaim>({ ...RENEW_LEASES, values, ...limit });
      for (const claim of this.stopOthers(claims, rows)) {
        claim.leaseUntil = Math.max(claim.leaseUntil, sentAt + leaseMs);
      }
    } catch (error) {
      logger.warn({ err: error, claims: claims.length }, 'leases: could not be renewed');
      this.nextRenewalAt = 0;
    }
  }

  /** Stops the work on every claim that does not hold any more. A failure to look means nothing: the leases tell. */
  async check(): Promise<void> {
    const { pool, holder, logger } = this.options;
    const claims = this.claimsAtWork();
    if (claims.length === 0) return;
    try {
      const limit = { query_timeout: CHECK_EVERY_MS };
      const { rows } = await pool.query<HeldClaim>({ ...FIND_HELD_CLAIMS, values: [holder], ...limit });
      this.stopOthers(claims, rows);
    } catch (error) {
      logger.debug({ err: error }, 'leases: could not be looked at');
    }
  }

  private claimsAtWork(): Claim[] {
    return this.claims().filter(({ isLost }) => !isLost);
  }

  /** Answers those that hold. */
  private stopOthers(claims: Claim[], holding: readonly HeldClaim[]): Claim[] {
    const held = new Set(holding.map(({ runId, attempt }) => `${runId} ${attempt}`));
    return claims.filter((claim) => {
      if (held.has(`${claim.offer.runId} ${claim.attempt}`)) return true;
      claim.stop('gone');
      return false;
    });
  }

  private get lookEveryMs(): number {
    return Math.min(CHECK_EVERY_MS / 4, Math.max(5, this.options.leaseMs / 40));
  }

  private look(): void {
    const now = performance.now();
    for (const claim of this.claims()) this.loseInTime(claim);
    const renews = now >= this.nextRenewalAt;
    if (!renews && now < this.nextCheckAt) return;
    this.nextCheckAt = now + CHECK_EVERY_MS;
    if (!renews) return void this.check();
    this.nextRenewalAt = now + this.options.leaseMs / 3;
    void this.renew();
  }

  private loseInTime(claim: Claim): void {
    if (claim.isLost || performance.now() < claim.leaseUntil - 2 * this.lookEveryMs) return;
    this.options.logger.warn(claim.names, 'leases: one could not be renewed in time, its work stops');
    claim.stop('unsure');
  }
}
