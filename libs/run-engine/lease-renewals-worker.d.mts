import type { QueryConfig } from 'pg';

/** A claim with a lease to renew. */
export interface HeldLease {
  runId: string;
  attempt: number;
  /** The earliest end of the lease, milliseconds of the clock `now`. */
  leaseUntil: number;
}

/** Claims by `keyOf`. `renewedAt` is when the renewal was sent, milliseconds; null if the leases were only read. */
export type LeaseReport =
  | { kept: string[]; gone: string[]; renewedAt: number | null }
  | { failed: string; claims: number };

export interface LeaseStatements {
  renew: QueryConfig;
  check: QueryConfig;
  heartbeat: QueryConfig;
}

export interface LeaseRenewalsOptions {
  /** The worker process. */
  holder: string;
  leaseMs: number;
  statements: LeaseStatements;
  query: (
    statement: QueryConfig & { query_timeout: number },
  ) => Promise<{ rows: { runId: string; attempt: number }[] }>;
  /** A monotonic clock, milliseconds. */
  now: () => number;
  /** When the main thread last showed that it is not stalled, by the same clock. */
  beatAt: () => number;
  report: (report: LeaseReport) => void;
}

/**
 * Renews the leases of its claims by one statement every third of a lease, and reads every second which of them still hold. Renews
 * nothing while the main thread has not beaten for longer than a lease.
 */
export class LeaseRenewals {
  constructor(options: LeaseRenewalsOptions);
  hold(lease: HeldLease): void;
  release(claim: Pick<HeldLease, 'runId' | 'attempt'>): void;
  /** Sends the statements that are due. Call it at least 40 times a lease. */
  tick(): void;
}

export function keyOf(claim: Pick<HeldLease, 'runId' | 'attempt'>): string;
