import { Fragment, memo, useMemo, useState } from 'react';
import { Alert, Button, Group, Switch, Text } from '@mantine/core';
import type { RunTimeline as Timeline, TimelineSpan } from '#contract';
import { useClock } from '../components/clock.ts';
import { counted, formatCount, formatDuration, formatTime, shortenId } from '../components/format.ts';
import { Empty } from '../components/query-state.tsx';
import { Section } from '../components/section.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import classes from './run-timeline.module.css';
import { layOutTimeline, type TimelineLayout, type TimelineRow } from './timeline-layout.ts';

const KINDS: Record<TimelineSpan['kind'], string> = {
  queue: 'Queue',
  delay: 'Delay',
  boot: 'Boot',
  model: 'Model',
  tool: 'Tool',
  waiting: 'Waiting',
};

const OUTCOMES: Record<NonNullable<TimelineSpan['outcome']>, { label: string; color: string } | null> = {
  ok: null,
  error: { label: 'Error', color: 'red' },
  refused: { label: 'Refused', color: 'grape' },
  unknown: { label: 'Outcome unknown', color: 'orange' },
  cut: { label: 'Cut', color: 'orange' },
};

/** Shows how a Run spent its time, as a table whose rows have a bar each, on one axis. */
export function RunTimeline({ timeline, isLive }: { timeline: Timeline; isLive: boolean }) {
  const { spans, isComplete } = timeline;
  const [shortenWaits, setShortenWaits] = useState(true);
  // A timeline without open spans is not drawn again each second.
  const goesOn = spans.some(({ endedAt }) => endedAt === null);
  const until = useClock((now) => (goesOn ? now : 0));
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
        {layout.hasLongWaits && (
          <Switch
            size="xs"
            label="Shorten waits"
            checked={shortenWaits}
            onChange={(event) => setShortenWaits(event.currentTarget.checked)}
          />
        )}
      </Group>
      {spans.length === 0 ? <Empty>Nothing has happened yet.</Empty> : <Waterfall layout={layout} />}
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

/** Roles are explicit, because a screen reader does not see a table in one that is laid out as a grid. */
const Waterfall = memo(function Waterfall({ layout }: { layout: TimelineLayout }) {
  const [isWhole, setWhole] = useState(false);
  const { rows, ticks } = layout;
  const left = isWhole ? 0 : Math.max(0, rows.length - SHOWN_ROWS);
  return (
    <>
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
          {rows.slice(left).map((row, i) => (
            <Fragment key={left + i}>
              {row.begins !== null && <AttemptRow attempt={row.begins} holder={row.span.holder} />}
              <SpanRow row={row} ticks={ticks} />
            </Fragment>
          ))}
        </tbody>
      </table>
    </>
  );
});

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

function SpanRow({ row, ticks }: { row: TimelineRow; ticks: TimelineLayout['ticks'] }) {
  const { span, left, width, firstText, offsetMs, durationMs } = row;
  const kind = KINDS[span.kind];
  return (
    <tr role="row" className={classes.row}>
      <td role="cell" className={classes.name}>
        <Text size="sm" className={classes.title}>
          {kind}
          {span.name.toLowerCase() !== kind.toLowerCase() && <span className={classes.what}> {span.name}</span>}
        </Text>
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
  const told = outcome === null ? { label: 'Running', color: 'indigo' } : OUTCOMES[outcome];
  const firstText = firstTextAt === null ? null : Date.parse(firstTextAt) - Date.parse(startedAt);
  return (
    <>
      {told && (outcome !== null || endedAt === null) && <StatusBadge color={told.color}>{told.label}</StatusBadge>}
      {outcome === 'ok' && <span className={classes.spoken}>OK</span>}
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
