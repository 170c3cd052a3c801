import type { SendEventsAnswer, SendWarningCode } from '#contract';
import { decide, isRejection, type Command, type Rejection, type ThreadState } from '#domain';
import type { LoadedThread } from '#event-store';

/** What to do with a batch of events: the commands to append, and for every event the Run that it made or affected. */
export interface BatchPlan {
  commands: Command[];
  runIds: (string | null)[];
  /** Warnings about parts of the request that were not honoured. */
  warnings: Warning[];
}

type Warning = SendEventsAnswer['warnings'][number] & { code: SendWarningCode };

/**
 * Goes through the commands one after another, so that each event's Run is known. An interrupt of a Run that has ended,
 * before or by this very batch, has nothing to do and is not refused (docs/spec/decisions.md#ended-runs); every other
 * refusal refuses the batch. `ended`: Runs of the Thread that are known to be terminal, by id.
 */
export function planBatch(
  commands: readonly Command[],
  ended: { has(runId: string): boolean },
  { state: before, lastOccurredAt }: LoadedThread,
): BatchPlan | Rejection {
  const liveBefore = new Set(before.lifecycle === 'none' ? [] : before.runs.map(({ id }) => id));
  const plan: BatchPlan = { commands: [], runIds: [], warnings: [] };
  let state = before;
  for (const [i, command] of commands.entries()) {
    // Which time it is matters to durations only, and those are decided anew by the append.
    const decision = decide([command], state, lastOccurredAt ?? new Date(0).toISOString());
    if (isRejection(decision)) {
      const named = command.type === 'interrupt' && decision.rejected === 'run_not_live' ? command.runId : null;
      if (named === null || !(ended.has(named) || liveBefore.has(named))) return decision;
      plan.runIds.push(named);
      plan.warnings.push({
        code: 'run_already_ended',
        message: `body.events.${i}: The Run ${named} had already ended.`,
      });
      continue;
    }
    plan.commands.push(command);
    plan.warnings.push(...warnOfQueue(i, command, state));
    plan.runIds.push(decision.events.findLast(({ runId }) => runId !== null)?.runId ?? null);
    state = decision.state;
  }
  return plan;
}

function warnOfQueue(i: number, command: Command, state: ThreadState): Warning[] {
  const ahead = state.lifecycle === 'none' ? 0 : state.runs.length;
  if (command.type !== 'add_message' || command.whenBusy !== 'enqueue' || ahead === 0) return [];
  const runs = ahead === 1 ? '1 Run' : `${ahead} Runs`;
  return [{ code: 'message_queued', message: `body.events.${i}: The message waits behind ${runs} of the Thread.` }];
}
