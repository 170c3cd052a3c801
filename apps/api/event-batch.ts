import { decide, isRejection, type Command, type Rejection } from '#domain';
import type { LoadedThread } from '#event-store';

/** What to do with a batch of events: the commands to append, and for every event the Run that it made or affected. */
export interface BatchPlan {
  commands: Command[];
  runIds: (string | null)[];
}

/**
 * Goes through the commands one after another, so that each event's Run is known. An interrupt of a Run that has ended,
 * before or by this very batch, has nothing to do and is not refused (decisions, section 2); every other refusal refuses
 * the batch. `ended`: Runs of the Thread that are known to be terminal, by id.
 */
export function planBatch(
  commands: readonly Command[],
  ended: { has(runId: string): boolean },
  { state: before, lastOccurredAt }: LoadedThread,
): BatchPlan | Rejection {
  const liveBefore = new Set(before.lifecycle === 'none' ? [] : before.runs.map(({ id }) => id));
  const plan: BatchPlan = { commands: [], runIds: [] };
  let state = before;
  for (const command of commands) {
    // Which time it is matters to durations only, and those are decided anew by the append.
    const decision = decide([command], state, lastOccurredAt ?? new Date(0).toISOString());
    if (isRejection(decision)) {
      const named = command.type === 'interrupt' && decision.rejected === 'run_not_live' ? command.runId : null;
      if (named === null || !(ended.has(named) || liveBefore.has(named))) return decision;
      plan.runIds.push(named);
      continue;
    }
    plan.commands.push(command);
    plan.runIds.push(decision.events.findLast(({ runId }) => runId !== null)?.runId ?? null);
    state = decision.state;
  }
  return plan;
}
