import type { RunTimeline, TimelineSpan } from '#contract';
import type { Session } from '../session.ts';
import { renderFields, type Column } from '../table.ts';

const between = (from: string, to: string): string => `${((Date.parse(to) - Date.parse(from)) / 1_000).toFixed(3)} s`;

const columns: Column<TimelineSpan>[] = [
  { head: 'began', value: ({ startedAt }) => startedAt },
  { head: 'took', value: ({ startedAt, endedAt }) => (endedAt === null ? 'running' : between(startedAt, endedAt)) },
  { head: 'what', value: ({ kind }) => kind },
  { head: 'name', value: ({ name }) => name, cut: true },
  { head: 'outcome', value: ({ outcome }) => outcome },
  { head: 'attempt', value: ({ attempt }) => attempt },
  { head: 'first text', value: ({ startedAt, firstTextAt }) => firstTextAt && between(startedAt, firstTextAt) },
  { head: 'tokens in', value: ({ inputTokens }) => inputTokens },
  { head: 'out', value: ({ outputTokens }) => outputTokens },
  { head: 'cause', value: ({ cause }) => cause?.summary, cut: true },
];

/** Describes how a Run spent its time and tokens. */
export function describeTimeline(session: Session, timeline: RunTimeline): string {
  const { agentVersion, spans, usage, losses, cancelledBy, isComplete } = timeline;
  const totals = renderFields([
    ['agent version', agentVersion],
    ['tokens in', usage.inputTokens],
    ['of these cached', usage.cachedInputTokens],
    ['tokens out', usage.outputTokens],
    ['cost', usage.cost],
    ['losses', losses],
    ...(cancelledBy ? [['cancelled by', `${cancelledBy.name} (${cancelledBy.kind})`] as const] : []),
  ]);
  const rest = isComplete ? '' : '\n\nThe Run has more events than the timeline reads; later events are missing.';
  return `${totals}\n\n${session.table(columns, spans)}${rest}`;
}
