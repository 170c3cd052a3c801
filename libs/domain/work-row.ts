import type { LiveRun, Thread, ThreadState } from './state.ts';

/**
 * What the queue and the reaper have to know of a live Run: its row in `run_work`, written by the append that changed it
 * and gone at the terminal event.
 */
export interface WorkRow {
  runId: string;
  organizationId: string;
  agentId: string;
  /** `ready` is to be offered; `delayed` will be; the others are somebody's: a worker's or a person's. */
  state: 'ready' | 'leased' | 'waiting' | 'delayed';
  dispatch: number;
  attempt: number;
  holder: string | null;
  /** When something is to happen, milliseconds from the commit by the database's clock; null for never. */
  dueInMs: number | null;
  /** The time limit on being ready, for the moment when a delayed Run becomes ready, milliseconds. */
  queueMs: number;
  /** The work limit, milliseconds; the database counts what its claims take of it, by its own clock. */
  workMs: number;
}

/** The rows to write and the Runs whose row goes, when `before` becomes `after`. */
export function workChanges(
  before: ThreadState,
  after: ThreadState,
  leaseMs: number,
): { rows: WorkRow[]; gone: string[] } {
  if (before === after || after.lifecycle === 'none') return { rows: [], gone: [] };
  const old = before.lifecycle === 'none' ? [] : before.runs;
  const oldRows = new Map(old.map((run, i) => [run.id, workRow(before as Thread, run, i === 0, leaseMs)]));
  const rows = after.runs
    .map((run, i) => workRow(after, run, i === 0, leaseMs))
    .filter((row) => !sameWork(oldRows.get(row.runId), row));
  const live = new Set(after.runs.map(({ id }) => id));
  return { rows, gone: old.map(({ id }) => id).filter((id) => !live.has(id)) };
}

function workRow(thread: Thread, run: LiveRun, current: boolean, leaseMs: number): WorkRow {
  const { organizationId, agentId } = thread;
  const { id: runId, dispatch, attempt, limits } = run;
  const { queueMs, workMs } = limits;
  const row = { runId, organizationId, agentId, dispatch, attempt, queueMs, workMs, holder: null };
  switch (run.status) {
    case 'queued':
      // Behind an earlier Run nothing is due: the commit that ends that Run opens this one.
      if (!current) return { ...row, state: 'delayed', dueInMs: null };
      if (run.delayMs > 0) return { ...row, state: 'delayed', dueInMs: run.delayMs };
      return { ...row, state: 'ready', dueInMs: queueMs };
    case 'booting':
    case 'running':
      return { ...row, state: 'leased', holder: run.holder, dueInMs: leaseMs };
    case 'waiting_input':
      return { ...row, state: 'waiting', dueInMs: limits.waitMs };
  }
}

/** A row is written when the Run moved, not when its claim made progress: a step must not renew the lease. */
function sameWork(a: WorkRow | undefined, b: WorkRow): boolean {
  return (
    a !== undefined &&
    a.state === b.state &&
    a.dispatch === b.dispatch &&
    a.attempt === b.attempt &&
    a.dueInMs === b.dueInMs
  );
}
