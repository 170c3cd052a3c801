import { initialState, workChanges, type ThreadState, type WorkItem } from '#domain';
import type { Report } from './check-stream.ts';

/** The columns of `run_work` that follow from the state. The due time does not: the clock of the database sets it. */
export interface StoredWork {
  runId: string;
  threadId: string;
  organizationId: string;
  agentId: string;
  state: WorkItem['state'] | 'limited';
  dispatch: number;
  attempt: number;
  holder: string | null;
  isDue: boolean;
  queueMs: number;
  hasWorkLimit: boolean;
}

/** Checks that each live Run has the work item that its state requires. */
export function checkWork(
  threadId: string,
  state: ThreadState,
  stored: ReadonlyMap<string, StoredWork>,
  report: Report,
): void {
  for (const row of workChanges(initialState, state, 1).rows) {
    const found = stored.get(row.runId);
    if (found === undefined) {
      report('work', `Run ${row.runId} is live but has no row in run_work`);
      continue;
    }
    for (const [name, value] of Object.entries(expectedWork(threadId, row, found))) {
      const now = found[name as keyof StoredWork];
      if (now !== value) report('work', `Run ${row.runId}: ${name} is ${now} in run_work, but its state says ${value}`);
    }
  }
}

function expectedWork(threadId: string, row: WorkItem, found: StoredWork): StoredWork {
  const { runId, organizationId, agentId, dispatch, attempt, holder, queueMs, dueInMs } = row;
  // Two changes happen without an append: the dispatcher makes a due delayed item ready, and a claim makes a ready item wait
  // for a concurrency limit. The latter has no due time.
  const isAwake = row.state === 'delayed' && dueInMs !== null && found.state !== 'delayed';
  const isReady = isAwake || row.state === 'ready';
  const waits = isReady && found.state === 'limited';
  const state = waits ? 'limited' : isReady ? 'ready' : row.state;
  const dates = { isDue: dueInMs !== null && !waits, hasWorkLimit: row.state === 'leased' };
  return { runId, threadId, organizationId, agentId, state, dispatch, attempt, holder, queueMs, ...dates };
}
