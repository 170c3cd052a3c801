import { Fragment, useMemo, useState } from 'react';
import { Alert, Button, Group, Switch, Text, UnstyledButton } from '@mantine/core';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import type { RunTimeline as Timeline, TimelineSpan } from '#contract';
import { useClock } from '../components/clock.ts';
import { counted, formatCount, formatDuration, formatTime, shortenId } from '../components/format.ts';
import { Empty, ErrorNote } from '../components/query-state.tsx';
import { Section } from '../components/section.tsx';
import { OutcomeBadge } from './outcome-badge.tsx';
import classes from './run-timeline.module.css';
import { SpanContent } from './span-content.tsx';
import { layOutTimeline, type TimelineLayout, type TimelineRow } from './timeline-layout.ts';
import { useRunEvents } from './use-run-events.ts';

const KINDS: Record<TimelineSpan['kind'], string> = {
  queue: 'Queue',
  delay: 'Delay',
  boot: 'Boot',
  model: 'Model',
  tool: 'Tool',
  waiting: 'Waiting',
};

interface Props {
  runId: string;
  timeline: Timeline;
  isLive: boolean;
}

/** Shows the spans of a Run as a table, with one bar a row on a common axis. Rows with content can be opened. */
export function RunTimeline({ runId, timeline, isLive }: Props) {
  const { spans, isComplete } = timeline;
  const [shortenWaits, setShortenWaits] = useState(true);
  // A timeline without open spans is not drawn again each second.
  const goesOn = spans.some(({ endedAt }) => endedAt === null);
  const until = useClock((now) => (goesOn ? now : 0));
  const open = useOpenSpans();
  const layout = useMemo(() => layOutTimeline(spans, until, { shortenWaits }), [spans, until, shortenWaits]);
  return (
    <Section
      title="Timeline"
      actions={
        <Text size="xs" c="dimmed">
          {counted(spans.length, 'span')}, {formatDuration(layout.totalMs)}
          {isLive && ' so far'}
        </Text>
      }
    >
      {!isComplete && (
        <Alert color="orange" mb="xs" py="xs">
          The Run has more events than the timeline reads; the last ones are not shown.
        </Alert>
      )}
      <Group justify="space-between" mb="xs" gap="xs">
        <Legend spans={spans} />
        <Group gap="sm">
          {layout.hasLongWaits && (
            <Switch
              size="xs"
              label="Shorten waits"
              checked={shortenWaits}
              onChange={(event) => setShortenWaits(event.currentTarget.checked)}
            />
          )}
          {spans.some(hasContent) && (
            <Button variant="default" size="compact-xs" onClick={open.toggleAll}>
              {open.isEverything ? 'Hide everything' : 'Show everything'}
            </Button>
          )}
        </Group>
      </Group>
      {spans.length === 0 ? <Empty>Nothing has happened yet.</Empty> : <Waterfall {...{ runId, layout, open }} />}
    </Section>
  );
}

function Legend({ spans }: { spans: readonly TimelineSpan[] }) {
  const kinds = (Object.keys(KINDS) as TimelineSpan['kind'][]).filter((kind) =>
    spans.some((span) => span.kind === kind),
  );
  return (
    <Group gap="sm" aria-hidden>
      {kinds.map((kind) => (
        <Group key={kind} gap={4}>
          <span className={classes.swatch} data-kind={kind} />
          <Text size="xs">{KINDS[kind]}</Text>
        </Group>
      ))}
    </Group>
  );
}

/** The number of rows that are drawn at first, because an Agent may take thousands of steps. */
const SHOWN_ROWS = 300;

interface WaterfallProps {
  runId: string;
  layout: TimelineLayout;
  open: ReturnType<typeof useOpenSpans>;
}

/** Sets explicit roles, because screen readers do not recognize a table that is laid out as a grid. */
function Waterfall({ runId, layout, open: { isOpen, toggle } }: WaterfallProps) {
  const [isWhole, setWhole] = useState(false);
  const { rows, ticks } = layout;
  const left = isWhole ? 0 : Math.max(0, rows.length - SHOWN_ROWS);
  const shown = rows.slice(left);
  // A browser cannot show the whole content of a long Run.
  const isOpenAt = ({ span }: TimelineRow, i: number) => isOpen(span, i >= shown.length - SHOWN_ROWS);
  const { events, failure, tryAgain } = useRunEvents(runId, versionsOf(shown.filter(isOpenAt).map(({ span }) => span)));
  return (
    <>
      {failure && <ErrorNote error={failure} onTryAgain={tryAgain} />}
      {left > 0 && (
        <Button variant="subtle" onClick={() => setWhole(true)}>
          Show {formatCount(left)} earlier spans
        </Button>
      )}
      <table role="table" aria-label="Timeline of the Run" className={classes.table}>
        <thead role="rowgroup">
          <tr role="row" className={classes.row}>
            <th role="columnheader" className={classes.name}>
              Step
            </th>
            <th role="columnheader" className={classes.track} aria-label="When">
              {ticks.map(({ at, offsetMs }) => (
                <span key={at} className={classes.tick} data-late={at > 80 || undefined} style={{ left: `${at}%` }}>
                  {formatDuration(offsetMs)}
                </span>
              ))}
            </th>
            <th role="columnheader" className={classes.number}>
              Took
            </th>
            <th role="columnheader" className={classes.more}>
              Outcome
            </th>
          </tr>
        </thead>
        <tbody role="rowgroup">
          {shown.map((row, i) => (
            <Fragment key={keyOf(row.span)}>
              {row.begins !== null && <AttemptRow attempt={row.begins} holder={row.span.holder} />}
              <SpanRow row={row} ticks={ticks} isOpen={isOpenAt(row, i)} onToggle={() => toggle(row.span)} />
              {isOpenAt(row, i) && (
                <tr role="row">
                  <td role="cell" colSpan={4} className={classes.content}>
                    <SpanContent span={row.span} events={events} />
                  </td>
                </tr>
              )}
            </Fragment>
          ))}
        </tbody>
      </table>
    </>
  );
}

/** Returns the versions of the stored events with the content of the spans, in ascending order. */
const versionsOf = (spans: readonly TimelineSpan[]): number[] => {
  const versions = spans.flatMap(({ inputVersion, outputVersion }) => [inputVersion, outputVersion]);
  return [...new Set(versions.filter((version) => typeof version === 'number'))].sort((a, b) => a - b);
};

/** Returns the key of a row. A span has no id, and rows move while a Run is live. */
const keyOf = ({ kind, attempt, startedAt, toolCallId }: TimelineSpan): string =>
  [kind, attempt, startedAt, toolCallId].join(' ');

/** Returns the state of the spans that show their content. */
function useOpenSpans() {
  const [isEverything, setEverything] = useState(false);
  /** The keys of the spans whose state differs from `isEverything`. */
  const [others, setOthers] = useState<readonly string[]>([]);
  return {
    isEverything,
    /** `isRecent` is true if "Show everything" opens the span. */
    isOpen: (span: TimelineSpan, isRecent: boolean) =>
      hasContent(span) && (isEverything && isRecent) !== others.includes(keyOf(span)),
    toggle: (span: TimelineSpan) => {
      const key = keyOf(span);
      setOthers((before) => (before.includes(key) ? before.filter((each) => each !== key) : [...before, key]));
    },
    toggleAll: () => {
      setEverything(!isEverything);
      setOthers([]);
    },
  };
}

const hasContent = (span: TimelineSpan): boolean => versionsOf([span]).length > 0;

function AttemptRow({ attempt, holder }: { attempt: number; holder: string | null }) {
  return (
    <tr role="row">
      <th role="rowheader" colSpan={4} className={classes.attempt} title={holder ?? undefined}>
        Attempt {attempt}
        {holder !== null && ` on worker ${shortenId(holder)}`}
      </th>
    </tr>
  );
}

interface SpanRowProps {
  row: TimelineRow;
  ticks: TimelineLayout['ticks'];
  isOpen: boolean;
  onToggle: () => void;
}

function SpanRow({ row, ticks, isOpen, onToggle }: SpanRowProps) {
  const { span, left, width, firstText, offsetMs, durationMs } = row;
  const kind = KINDS[span.kind];
  const name = (
    <Text size="sm" className={classes.title}>
      {kind}
      {span.name.toLowerCase() !== kind.toLowerCase() && <span className={classes.what}> {span.name}</span>}
    </Text>
  );
  return (
    <tr role="row" className={classes.row}>
      <td role="cell" className={classes.name}>
        {!hasContent(span) ? (
          <span className={classes.leaf}>{name}</span>
        ) : (
          <UnstyledButton className={classes.toggle} aria-expanded={isOpen} onClick={onToggle}>
            {isOpen ? <IconChevronDown size={14} aria-hidden /> : <IconChevronRight size={14} aria-hidden />}
            {name}
          </UnstyledButton>
        )}
      </td>
      <td role="cell" className={classes.track} title={formatTime(span.startedAt)}>
        <span className={classes.spoken}>after {formatDuration(offsetMs)}</span>
        {ticks.map(({ at }) => (
          <span key={at} aria-hidden className={classes.line} style={{ left: `${at}%` }} />
        ))}
        <span
          aria-hidden
          className={classes.bar}
          data-kind={span.kind}
          data-open={span.endedAt === null || undefined}
          style={{ left: `${left}%`, width: `${width}%` }}
        />
        {firstText !== null && <span aria-hidden className={classes.first} style={{ left: `${firstText}%` }} />}
      </td>
      <td role="cell" className={classes.number}>
        {formatDuration(durationMs)}
      </td>
      <td role="cell" className={classes.more}>
        <Outcome span={span} />
      </td>
    </tr>
  );
}

function Outcome({ span }: { span: TimelineSpan }) {
  const { outcome, endedAt, firstTextAt, startedAt, cause, inputTokens, outputTokens } = span;
  const firstText = firstTextAt === null ? null : Date.parse(firstTextAt) - Date.parse(startedAt);
  return (
    <>
      {outcome === 'ok' ? (
        <span className={classes.spoken}>OK</span>
      ) : (
        <OutcomeBadge outcome={outcome} isActive={endedAt === null} />
      )}
      {cause && (
        <Text span size="xs" c="dimmed" title={cause.message}>
          {cause.summary}
        </Text>
      )}
      {firstText !== null && (
        <Text span size="xs" c="dimmed">
          first text after {formatDuration(firstText)}
        </Text>
      )}
      {inputTokens !== null && outputTokens !== null && (
        <Text span size="xs" c="dimmed">
          {formatCount(inputTokens)} tokens in, {formatCount(outputTokens)} out
        </Text>
      )}
    </>
  );
}
