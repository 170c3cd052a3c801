import type { LoadedThread, RunJob } from '#event-store';
import { createLogger } from '#platform';
import { Claim, type ClaimParts } from './claim.ts';
import { LeaseKeeper, type LeaseRenewer } from './lease-keeper.ts';
import { keyOf, type LeaseReport } from './lease-renewals-worker.mjs';

const LEASE_MS = 1_000;
/** A time of `performance.now()` that no process reaches, so that no lease ends in this spec. */
const SENT_AT = 1e12;

it('counts a renewed lease from the time when the renewal was sent, even if its report is read late', () => {
  const reports: LeaseReport[] = [];
  const renewer: LeaseRenewer = {
    start: () => undefined,
    stop: () => Promise.resolve(),
    hold: () => undefined,
    release: () => undefined,
    beat: () => undefined,
    take: () => reports.splice(0),
  };
  const leases = new LeaseKeeper({ renewer, leaseMs: LEASE_MS, logger: createLogger('silent', 'lease keeper spec') });
  const job = { threadId: 'T', runId: 'R' } as RunJob;
  const thread = { version: 1 } as LoadedThread;
  const claim = new Claim({ leases } as unknown as ClaimParts, { job, attempt: 1, thread, leaseUntil: SENT_AT });
  leases.hold(claim);
  reports.push({ kept: [keyOf(claim.fence)], gone: [], renewedAt: SENT_AT });
  leases.look();
  expect(claim.leaseUntil).toBe(SENT_AT + LEASE_MS);
});
