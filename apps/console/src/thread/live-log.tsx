import { useRef } from 'react';
import { Button, Group, Paper, Text } from '@mantine/core';
import { useThrottledCallback } from '@mantine/hooks';
import { IconArrowDown, IconHistory } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import type { ThreadMessages } from '#client';
import type { ThreadEventLogEntry as LogEntry } from '#contract';
import { formatCount } from '../components/format.ts';
import { Empty, ErrorNote, Loading } from '../components/query-state.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import type { Connection } from './follow-log.ts';
import classes from './live-log.module.css';
import { FileView, MessageView } from './message-view.tsx';
import { useFollowedEnd } from './use-followed-end.ts';
import { useLiveLog } from './use-live-log.ts';

const CONNECTION: Record<Connection, { label: string; color: string }> = {
  connecting: { label: 'Connecting', color: 'gray' },
  live: { label: 'Live', color: 'teal' },
  reconnecting: { label: 'Reconnecting', color: 'orange' },
  gone: { label: 'The Thread is deleted', color: 'red' },
  refused: { label: 'Access denied', color: 'red' },
};

interface Props {
  threadId: string;
  /** The number of stored events, about. */
  events: number;
}

/** The conversation of a Thread, live. Needs another `key` for another Thread. */
export function LiveLog({ threadId, events }: Props) {
  const refresh = useRefresh();
  const log = useLiveLog(threadId, events, (entries) => entries.some(changesPage) && refresh());
  const { window, connection, isReadingEarlier, earlierError } = log;
  const box = useRef<HTMLDivElement>(null);
  const { isAtEnd, onScroll, goToEnd } = useFollowedEnd(box, window.conversation, window.entries[0]?.id);
  const { label, color } = CONNECTION[connection];
  const isTrying = connection !== 'gone' && connection !== 'refused';
  const hasEntries = window.entries.length > 0;
  return (
    <Paper component="section" withBorder aria-label="Live log" className={classes.log}>
      <Group justify="space-between" p="xs" className={classes.bar}>
        <Group gap="xs">
          <div role="status" aria-label="Connection">
            <StatusBadge color={color}>{label}</StatusBadge>
          </div>
          {hasEntries && (
            <Text size="xs" c="dimmed">
              {window.reachesStart ? 'All' : 'Latest'} {formatCount(window.entries.length)} entries
            </Text>
          )}
        </Group>
        {!isAtEnd && (
          <Button variant="light" leftSection={<IconArrowDown size={14} />} onClick={goToEnd}>
            Jump to latest
          </Button>
        )}
      </Group>
      <div
        ref={box}
        onScroll={onScroll}
        className={classes.box}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label="Log entries"
      >
        {earlierError && <ErrorNote error={earlierError} onTryAgain={log.readEarlier} />}
        {hasEntries && !window.reachesStart && (
          <Group justify="center" p="xs">
            <Button
              variant="default"
              leftSection={<IconHistory size={14} />}
              loading={isReadingEarlier}
              onClick={log.readEarlier}
            >
              Show earlier entries
            </Button>
          </Group>
        )}
        {!hasEntries && (window.reachesStart ? <Empty>No entries so far.</Empty> : isTrying && <Loading />)}
        <Conversation {...window.conversation} />
      </div>
    </Paper>
  );
}

const Conversation = ({ messages, attached = [] }: ThreadMessages) => (
  <>
    {messages.map((message) => (
      <MessageView key={message.id} message={message} />
    ))}
    {attached.map((file) => (
      <FileView key={file.fileId} part={file} />
    ))}
  </>
);

/** Whether an entry changes the other parts of the page. */
const changesPage = ({ type }: LogEntry): boolean =>
  /^(run\.|session|file\.|user\.message|tool\.confirmation\.required)/.test(type);

const REFRESHED = ['/threads/{threadId}', '/threads/{threadId}/files', '/confirmations', '/runs'];

/** Refreshes the other parts of the page, at most once a second. */
function useRefresh(): () => void {
  const queries = useQueryClient();
  return useThrottledCallback(
    () => void queries.invalidateQueries({ predicate: ({ queryKey: [path] }) => REFRESHED.includes(path as string) }),
    1_000,
  );
}
