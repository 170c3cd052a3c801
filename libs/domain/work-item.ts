import type { LiveRun, Thread, ThreadState } from './state.ts';

/**
 * The work item of a live Run: its row in `run_work`, which the queue and the reaper read. Each append that moves the Run
 * writes the row, and the terminal event deletes it.
 */
export interface WorkItem {
  runId: string;
  organizationId: string;
  agentId: string;
  /** `ready` items can be enqueued, `delayed` ones later. A worker holds a `leased` item; `waiting` is for a person. */
  state: 'ready' | 'leased' | 'waiting' | 'delayed';
  dispatch: number;
  attempt: number;
  holder: string | null;
  /** The time until the item is due, milliseconds from the commit by the database clock; null for never. */
  dueInMs: number | null;
  /** The limit on the time as `ready`, milliseconds. It starts when the Run becomes ready. */
  queueMs: number;
  /** The work limit, milliseconds. The database counts the time of claims by its own clock. */
  workMs: number;
}

/** Returns the rows to write, and the Runs whose row is deleted, when `before` becomes `after`. */
export function workChanges(
  before: ThreadState,
  after: ThreadState,
  leaseMs: number,
): { rows: WorkItem[]; gone: string[] } {
  if (before === after || after.lifecycle === 'none') return { rows: [], gone: [] };
  const old = before.lifecycle === 'none' ? [] : before.runs;
  const oldRows = new Map(old.map((run, i) => [run.id, workItem(before as Thread, run, i === 0, leaseMs)]));
  const rows = after.runs
    .map((run, i) => workItem(after, run, i === 0, leaseMs))
    .filter((row) => !sameWork(oldRows.get(row.runId), row));
  const live = new Set(after.runs.map(({ id }) => id));
  return { rows, gone: old.map(({ id }) => id).filter((id) => !live.has(id)) };
}

function workItem(thread: Thread, run: LiveRun, current: boolean, leaseMs: number): WorkItem {
  const { organizationId, agentId } = thread;
  const { id: runId, dispatch, attempt, limits } = run;
  const { queueMs, workMs } = limits;
  const row = { runId, organizationId, agentId, dispatch, attempt, queueMs, workMs, holder: null };
  switch (run.status) {
    case 'queued':
      // Nothing is due behind an earlier Run. The commit that ends the earlier Run dispatches this one.
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

/** Returns whether the Run did not move. Progress of its claim does not count, because a step must not renew the lease. */
function sameWork(a: WorkItem | undefined, b: WorkItem): boolean {
  return (
    a !== undefined &&
    a.state === b.state &&
    a.dispatch === b.dispatch &&
    a.attempt === b.attempt &&
    a.dueInMs === b.dueInMs
  );
}
