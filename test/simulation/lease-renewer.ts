import type { Pool } from 'pg';
import { LEASE_STATEMENTS, LeaseRenewals, lookEveryMs, type LeaseRenewer, type LeaseReport } from '#run-engine';

/** The lease thread of a simulated process: the same renewals, by the timers and connections of the process itself. */
export function simulatedRenewer(pool: Pool, holder: string, leaseMs: number): LeaseRenewer {
  let beatAt = 0;
  let onReported = (): void => undefined;
  let reports: LeaseReport[] = [];
  let timer: NodeJS.Timeout;
  const renewals = new LeaseRenewals({
    ...{ holder, leaseMs, statements: LEASE_STATEMENTS },
    query: (statement) => pool.query(statement),
    now: () => performance.now(),
    beatAt: () => beatAt,
    report: (report) => {
      reports.push(report);
      onReported();
    },
  });
  return {
    start: (onReport) => {
      onReported = onReport;
      beatAt = performance.now();
      timer = setInterval(() => renewals.tick(), lookEveryMs(leaseMs));
    },
    stop: async () => clearInterval(timer),
    hold: (lease) => renewals.hold(lease),
    release: (claim) => renewals.release(claim),
    beat: () => void (beatAt = performance.now()),
    take: () => {
      const taken = reports;
      reports = [];
      return taken;
    },
  };
}
