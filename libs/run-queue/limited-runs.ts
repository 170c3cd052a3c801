import type { Pool } from 'pg';
import type { Commit, RunJob } from '#event-store';
import type { ThreadState } from '#domain';
import { namedStatement, type Logger } from '#platform';
import { throttledWarn } from './throttled-warn.ts';
import { monotonicNow } from './monotonic-now.ts';
import type { QueueControls } from './queue-controls.ts';

const FIND_LIMITED_ORGANIZATIONS = namedStatement(import.meta.dirname, 'find-limited-organizations.sql');
const LET_IN_LIMITED_RUNS = namedStatement(import.meta.dirname, 'let-in-limited-runs.sql');
const LIMIT_NEWCOMERS = namedStatement(import.meta.dirname, 'limit-newcomers.sql');

/** For so long one need not ask whether any Run waits: one does. */
const NEWS_MS = 1_000;
/** Of one statement; the dispatcher's next look brings more. */
const MAX_AT_ONCE = 1_000;

/**
 * Lets in Runs that wait for a concurrency limit of the organization or its agents, and returns their offers. `cap`: the limit
 * of an organization that has none of its own.
 */
async function letInLimitedRuns(pool: Pool, organizationId: string, cap: number | null): Promise<RunJob[]> {
  const { rows } = await pool.query<RunJob>({ ...LET_IN_LIMITED_RUNS, values: [organizationId, MAX_AT_ONCE, cap] });
  return rows;
}

/**
 * The same for all organizations, level-triggered, whatever made room and whoever missed it; and Runs that are ready behind
 * others that wait for the same limit wait too.
 */
export async function lookAtLimits(pool: Pool, cap: number | null): Promise<RunJob[]> {
  const { rows } = await pool.query<{ id: string }>(FIND_LIMITED_ORGANIZATIONS);
  const letIn: RunJob[] = [];
  for (const { id } of rows) {
    await pool.query({ ...LIMIT_NEWCOMERS, values: [id, MAX_AT_ONCE] });
    letIn.push(...(await letInLimitedRuns(pool, id, cap)));
  }
  return letIn;
}

export interface LimitedRunsOptions {
  pool: Pool;
  controls: Pick<QueueControls, 'read' | 'slotsPerOrganization'>;
  enqueueSoon: (offer: RunJob) => void;
  logger: Logger;
}

/**
 * Fills the room in concurrency limits as soon as a commit of this process makes some. Only the fast path: what it misses
 * the dispatcher finds, so no room is ever lost.
 */
export class LimitedRuns {
  private readonly organizationIds = new Set<string>();
  private readonly warn: (error: unknown, message: string) => void;
  private working: Promise<void> | null = null;
  /** Since when the controls, which are 250 ms old at most, may not know of a Run that waits. */
  private limitedAt = -Infinity;

  constructor(private readonly options: LimitedRunsOptions) {
    this.warn = throttledWarn(options.logger);
  }

  /** A claim may have ended with it. */
  onCommit({ before, after }: Commit): void {
    const ended = claimedRuns(before.state).some((id) => !claimedRuns(after.state).includes(id));
    if (ended && before.state.lifecycle !== 'none') void this.letInIfAny(before.state.organizationId);
  }

  /** A Run of the organization waits from now on. What was in its way may have ended before that was written down. */
  onLimited(organizationId: string): void {
    this.limitedAt = monotonicNow();
    this.letInSoon(organizationId);
  }

  async close(): Promise<void> {
    await this.working;
  }

  private async letInIfAny(organizationId: string): Promise<void> {
    const isNew = monotonicNow() - this.limitedAt < NEWS_MS;
    const known = isNew ? null : await this.options.controls.read().catch(() => null);
    if (isNew || known?.limited) this.letInSoon(organizationId);
  }

  /** One look at a time, for all organizations that have come together. */
  private letInSoon(organizationId: string): void {
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
        for (const id of ids) (await letInLimitedRuns(pool, id, cap)).forEach(enqueueSoon);
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
