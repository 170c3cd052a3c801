import type { RunJob } from '#event-store';

/** A row of find-ready-runs.sql. */
export interface ReadyRun extends RunJob {
  organizationId: string;
  /** Whether a Run of the organization is claimed. */
  hasSlot: boolean;
  /** Place among the ready Runs of its organization, from 1. */
  turn: number;
  /** Whether the organization may have more ready Runs than were read. */
  maybeMore: boolean;
}

/** The data, besides the rows, that determine the order. */
export interface FairShares {
  /** Slot-seconds of the last minute. */
  usedBy: (organizationId: string) => number;
  /** The mean time for which a Run holds its slot, seconds. */
  runSeconds: number;
  /** The number of the organization's last turn. */
  servedAt: (organizationId: string) => number;
  /** Whether the queue is known to hold a job of the Run. */
  isEnqueued: (run: ReadyRun) => boolean;
}

/** An organization is far behind if this many times its use is less than that of the heaviest user. */
const FAR_BEHIND = 2;

/**
 * Returns the Runs that belong at the head of the queue, ahead of the jobs there. First comes one Run of each organization
 * without a slot, the longest waiting first. Then comes one of each that has used far less than the heaviest user, the least
 * user first. `runs` are in the order of find-ready-runs.sql.
 */
export function runsAhead(runs: readonly ReadyRun[], { usedBy, runSeconds }: FairShares): ReadyRun[] {
  const firsts = runs.filter(({ turn }) => turn === 1);
  const others = firsts.filter(({ hasSlot }) => hasSlot).map((run) => ({ run, used: usedBy(run.organizationId) }));
  const most = Math.max(0, ...others.map(({ used }) => used));
  // A difference of one Run is chance.
  const behind = others.filter(({ used }) => FAR_BEHIND * (used + runSeconds) < most).toSorted(byUse);
  return [...firsts.filter(({ hasSlot }) => !hasSlot), ...behind.map(({ run }) => run)];
}

const byUse = (a: { used: number }, b: { used: number }): number => a.used - b.used;

/**
 * Returns the Runs that are not enqueued yet, the least user of slot-seconds first. Each enqueued Run counts in advance, so
 * equal organizations take turns. On a tie, the organization that was served longer ago comes first. By age alone, three
 * organizations with a queue of 8 jobs would always get 3, 3 and 2 of them.
 */
export function inTurn(runs: readonly ReadyRun[], shares: FairShares): ReadyRun[] {
  const counted = new Map<string, number>();
  for (const run of runs)
    if (shares.isEnqueued(run)) counted.set(run.organizationId, (counted.get(run.organizationId) ?? 0) + 1);
  const scored = runs
    .filter((run) => !shares.isEnqueued(run))
    .map((run) => {
      const before = counted.get(run.organizationId) ?? 0;
      counted.set(run.organizationId, before + 1);
      const used = shares.usedBy(run.organizationId) + before * shares.runSeconds;
      return { run, used, servedAt: shares.servedAt(run.organizationId) };
    });
  return scored
    .toSorted((a, b) => byUse(a, b) || a.run.turn - b.run.turn || a.servedAt - b.servedAt)
    .map(({ run }) => run);
}
