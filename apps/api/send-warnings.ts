import type { SendEventsAnswer, SendWarningCode } from '#contract';
import type { CommandOutcome } from '#domain';

type Warning = SendEventsAnswer['warnings'][number] & { code: SendWarningCode };

/** Returns warnings about the events of a batch that were accepted but had no effect, or not yet. */
export function warningsOf(outcomes: readonly CommandOutcome[]): Warning[] {
  return outcomes.flatMap(({ runId, waitsBehind, hadEnded }, i): Warning[] => {
    const where = `body.events.${i}`;
    if (hadEnded) return [{ code: 'run_already_ended', message: `${where}: The Run ${runId} had already ended.` }];
    if (waitsBehind === 0) return [];
    const runs = waitsBehind === 1 ? '1 Run' : `${waitsBehind} Runs`;
    return [{ code: 'message_queued', message: `${where}: The message waits behind ${runs} of the Thread.` }];
  });
}
