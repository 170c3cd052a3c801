import { SpanKind, traced, type SpanAbout } from '#platform';
import { nameOf, type Append, type AppendResult } from './append.ts';

/** Sends an append within a span that has its result as an attribute. */
export function tracedAppend(append: Append, send: () => Promise<AppendResult>): Promise<AppendResult> {
  return traced(
    'append',
    () => aboutAppend(append),
    async (span) => {
      const result = await send();
      span?.setAttribute('spool.append.outcome', nameOf(result));
      return result;
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
