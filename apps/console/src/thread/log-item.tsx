import { memo, useState, type ReactNode } from 'react';
import { Anchor, Code, Group, Text } from '@mantine/core';
import { shallowEqual } from '@mantine/hooks';
import { Link } from 'wouter';
import { formatCount, formatDuration, formatTime, shortenId } from '../components/format.ts';
import { StatusBadge } from '../components/status-badge.tsx';
import { JsonBlock } from '../components/json-block.tsx';
import classes from './log-item.module.css';
import type { LogItem, TextItem, TextState, ToolItem, ToolState } from './log-items.ts';
import { DownloadLink } from './download-link.tsx';

interface Props {
  item: LogItem;
  /** Of a file that has one. */
  fileName: string | undefined;
}

/** One item of the log. Drawn anew only where something of it has changed: a log has thousands. */
export const LogItemView = memo(
  function LogItemView({ item, fileName }: Props) {
    switch (item.kind) {
      case 'user':
        return (
          <Said item={item} who="User" look="user">
            {item.text}
          </Said>
        );
      case 'message':
      case 'thinking':
        return <AgentText item={item} />;
      case 'tool':
        return <Tool item={item} />;
      case 'file':
        return (
          <Line item={item}>
            {item.isAttachment ? 'Attachments changed: ' : 'The Agent created a file: '}
            <DownloadLink file={{ id: item.fileId, name: fileName ?? item.fileId }} size="xs" underline="always">
              {fileName ?? shortenId(item.fileId)}
            </DownloadLink>
          </Line>
        );
      default:
        return <Line item={item}>{tell(item)}</Line>;
    }
  },
  (before, after) => before.fileName === after.fileName && shallowEqual(before.item, after.item),
);

type Told = Exclude<LogItem, { kind: 'user' | 'message' | 'thinking' | 'tool' | 'file' }>;

function tell(item: Told): ReactNode {
  switch (item.kind) {
    case 'status':
      return `Thread: ${item.status.toLowerCase()}`;
    case 'started':
      return <>{runOf(item)} started</>;
    case 'completed':
      return (
        <>
          {runOf(item)} completed{took(item.durationMs)}
        </>
      );
    case 'ended':
      return (
        <Text span inherit c="red">
          {runOf(item)} ended{took(item.durationMs)}: {item.message}
        </Text>
      );
    case 'usage':
      return item.inputTokens === null || item.outputTokens === null
        ? `${formatCount(item.tokens)} tokens`
        : `${formatCount(item.inputTokens)} tokens in, ${formatCount(item.outputTokens)} out`;
    case 'unsupported':
      return 'This console version cannot show this entry';
  }
}

const took = (ms: number | null): string => (ms === null ? '' : ` after ${formatDuration(ms)}`);

const runOf = ({ runId }: LogItem): ReactNode =>
  runId === null ? (
    'Run'
  ) : (
    <Anchor component={Link} href={`/runs/${runId}`} inherit underline="always" title={runId}>
      Run {shortenId(runId)}
    </Anchor>
  );

/** What is short enough for one line. */
function Line({ item, children }: { item: LogItem; children: ReactNode }) {
  return (
    <div className={classes.line} data-kind={item.kind}>
      <Text size="xs" c="dimmed" className={classes.text}>
        {children}
      </Text>
      <Clock at={item.at} />
    </div>
  );
}

function Said({
  item,
  who,
  look,
  note,
  children,
}: {
  item: LogItem;
  who: string;
  look: string;
  note?: ReactNode;
  children: ReactNode;
}) {
  return (
    <div className={classes.said} data-kind={item.kind} data-look={look}>
      <Group justify="space-between" gap="xs" wrap="nowrap">
        <Group gap={6}>
          <Text size="xs" fw={600}>
            {who}
          </Text>
          {note}
        </Group>
        <Clock at={item.at} />
      </Group>
      <Text component="div" size="sm" className={classes.text}>
        {children}
      </Text>
    </div>
  );
}

const TEXT_NOTES: Record<TextState, { label: string; color: string } | null> = {
  open: { label: 'Streaming', color: 'indigo' },
  whole: null,
  void: { label: 'Discarded: its worker was lost', color: 'orange' },
  cut: { label: 'Not finished', color: 'gray' },
};

function AgentText({ item }: { item: TextItem }) {
  const note = TEXT_NOTES[item.state];
  const who = item.kind === 'message' ? 'Agent' : 'Agent thinks';
  const look = item.state === 'void' ? 'void' : item.kind;
  return (
    <Said {...{ item, who, look }} note={note && <StatusBadge color={note.color}>{note.label}</StatusBadge>}>
      {item.text}
    </Said>
  );
}

const TOOL_STATES: Record<ToolState, { label: string; color: string }> = {
  asked: { label: 'Waits for a person', color: 'orange' },
  running: { label: 'Running', color: 'indigo' },
  done: { label: 'Done', color: 'teal' },
  failed: { label: 'Failed or refused', color: 'red' },
  cut: { label: 'No result', color: 'gray' },
};

function Tool({ item }: { item: ToolItem }) {
  const { label, color } = TOOL_STATES[item.state];
  return (
    <Said
      item={item}
      who={item.title ?? item.toolName}
      look="tool"
      note={
        <>
          {item.title !== null && item.title !== item.toolName && <Code fz="xs">{item.toolName}</Code>}
          <StatusBadge color={color}>{label}</StatusBadge>
          {item.durationMs !== null && (
            <Text span size="xs" c="dimmed">
              {formatDuration(item.durationMs)}
            </Text>
          )}
        </>
      }
    >
      {item.input !== null && Object.keys(item.input).length > 0 && (
        <ToolInput key={item.state === 'asked' ? 'asked' : 'told'} item={item} isOpenAtFirst={item.state === 'asked'} />
      )}
      {item.summary}
    </Said>
  );
}

/** Written out only while it is looked at: a log has thousands. */
function ToolInput({ item, isOpenAtFirst }: { item: ToolItem; isOpenAtFirst: boolean }) {
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  return (
    <details className={classes.details} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Input</summary>
      {isOpen && <JsonBlock value={item.input} label={`Input of ${item.toolName}`} />}
    </details>
  );
}

const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

function Clock({ at }: { at: string }) {
  return (
    <Text component="time" dateTime={at} size="xs" c="dimmed" title={formatTime(at)} className={classes.clock}>
      {clock.format(new Date(at))}
    </Text>
  );
}
