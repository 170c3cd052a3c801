import { SpanKind, traced, type SpanAbout } from '#platform';
import type { Append, FinalOutcome } from './append.ts';

/** An append as a span of the trace under way, with what became of it. */
export function tracedAppend(append: Append, send: () => Promise<FinalOutcome>): Promise<FinalOutcome> {
  return traced(
    'append',
    () => aboutAppend(append),
    async (span) => {
      const outcome = await send();
      span?.setAttribute('spool.append.outcome', outcome);
      return outcome;
    },
  );
}

const aboutAppend = ({ after, events, fence }: Append): SpanAbout => ({
  kind: SpanKind.CLIENT,
  attributes: {
    'db.system.name': 'postgresql',
    'db.operation.name': 'append',
    'spool.thread.id': after.threadId,
    'spool.events.count': events.length,
    ...(fence ? { 'spool.run.id': fence.runId, 'spool.run.attempt': fence.attempt } : {}),
  },
});
