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

const SHOWN_CHARACTERS = 500;

/** Returns the beginning of an input or output. */
function beginningOf(content: RunTimeline['input']): string | null {
  if (!content) return null;
  const { text, length } = content;
  if (length <= SHOWN_CHARACTERS) return text;
  return `${[...text].slice(0, SHOWN_CHARACTERS).join('')}… (the first ${SHOWN_CHARACTERS} of ${length} characters)`;
}

/** Describes what a Run received and returned, and how it spent its time and tokens. */
export function describeTimeline(session: Session, timeline: RunTimeline): string {
  const { agentVersion, spans, usage, losses, cancelledBy, isComplete, input, output } = timeline;
  const totals = renderFields([
    ['input', beginningOf(input)],
    ['output', beginningOf(output)],
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
