import type { Pool } from 'pg';
import type { Commit, RunJob } from '#event-store';
import type { ThreadState } from '#domain';
import { namedStatement, type Logger } from '#platform';
import { throttledWarn } from './throttled-warn.ts';
import { monotonicNow } from './monotonic-now.ts';
import type { QueueControls } from './queue-controls.ts';

const FIND_LIMITED_ORGANIZATIONS = namedStatement(import.meta.dirname, 'find-limited-organizations.sql');
const ADMIT_LIMITED_RUNS = namedStatement(import.meta.dirname, 'admit-limited-runs.sql');
const LIMIT_NEWCOMERS = namedStatement(import.meta.dirname, 'limit-newcomers.sql');

/** How long after `onLimited` a Run is assumed to wait. */
const NEWS_MS = 1_000;
/** The most Runs of one statement; the dispatcher's next look handles more. */
const MAX_AT_ONCE = 1_000;

/**
 * Admits Runs that wait for a concurrency limit of the organization or its agents, and returns their jobs. `cap` is the limit of
 * an organization that has no own limit.
 */
async function admitLimitedRuns(pool: Pool, organizationId: string, cap: number | null): Promise<RunJob[]> {
  const { rows } = await pool.query<RunJob>({ ...ADMIT_LIMITED_RUNS, values: [organizationId, MAX_AT_ONCE, cap] });
  return rows;
}

/**
 * Admits limited Runs of all organizations, level-triggered, and returns their jobs. First makes ready Runs wait behind earlier
 * Runs that wait for the same limit.
 */
export async function lookAtLimits(pool: Pool, cap: number | null): Promise<RunJob[]> {
  const { rows } = await pool.query<{ id: string }>(FIND_LIMITED_ORGANIZATIONS);
  const admitted: RunJob[] = [];
  for (const { id } of rows) {
    await pool.query({ ...LIMIT_NEWCOMERS, values: [id, MAX_AT_ONCE] });
    admitted.push(...(await admitLimitedRuns(pool, id, cap)));
  }
  return admitted;
}

export interface LimitedRunsOptions {
  pool: Pool;
  controls: Pick<QueueControls, 'read' | 'slotsPerOrganization'>;
  enqueueSoon: (job: RunJob) => void;
  logger: Logger;
}

/**
 * Admits limited Runs as soon as a commit of this process makes room in a concurrency limit. This is the fast path: the
 * dispatcher finds the Runs that it misses.
 */
export class LimitedRuns {
  private readonly organizationIds = new Set<string>();
  private readonly warn: (error: unknown, message: string) => void;
  private working: Promise<void> | null = null;
  /** When a Run began to wait. The controls, at most 250 ms old, might not show it yet. */
  private limitedAt = -Infinity;

  constructor(private readonly options: LimitedRunsOptions) {
    this.warn = throttledWarn(options.logger);
  }

  /** Admits Runs if the commit ended a claim. */
  onCommit({ before, after }: Commit): void {
    const ended = claimedRuns(before.state).some((id) => !claimedRuns(after.state).includes(id));
    if (ended && before.state.lifecycle !== 'none') void this.admitIfAny(before.state.organizationId);
  }

  /** Notes that a Run of the organization waits, and tries to admit it: room may have come before the wait was recorded. */
  onLimited(organizationId: string): void {
    this.limitedAt = monotonicNow();
    this.admitSoon(organizationId);
  }

  async close(): Promise<void> {
    await this.working;
  }

  private async admitIfAny(organizationId: string): Promise<void> {
    const isNew = monotonicNow() - this.limitedAt < NEWS_MS;
    const known = isNew ? null : await this.options.controls.read().catch(() => null);
    if (isNew || known?.limited) this.admitSoon(organizationId);
  }

  /** Admits the Runs of all collected organizations, in one pass at a time. */
  private admitSoon(organizationId: string): void {
    this.organizationIds.add(organizationId);
    this.working ??= this.work();
  }

  private async work(): Promise<void> {
    const { pool, controls, enqueueSoon } = this.options;
    while (this.organizationIds.size > 0) {
      const ids = [...this.organizationIds];
      this.organizationIds.clear();
      try {
        const cap = await controls.slotsPerOrganization();
        for (const id of ids) (await admitLimitedRuns(pool, id, cap)).forEach(enqueueSoon);
      } catch (error) {
        this.warn(error, 'admitting limited runs failed; the dispatcher retries');
      }
    }
    this.working = null;
  }
}

function claimedRuns(state: ThreadState): string[] {
  if (state.lifecycle === 'none') return [];
  return state.runs.filter(({ status }) => status === 'booting' || status === 'running').map(({ id }) => id);
}
