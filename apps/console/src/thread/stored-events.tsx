import { useState } from 'react';
import { Button, Code, Group, Table, Text, UnstyledButton } from '@mantine/core';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import type { AdminAnswer, AdminOperations } from '#contract';
import { get } from '../api/client.ts';
import { usePagesBy } from '../api/use-pages.ts';
import { FilterSelect } from '../components/filter-select.tsx';
import { formatCount, formatTime } from '../components/format.ts';
import { LoadMore } from '../components/load-more.tsx';
import { QueryState } from '../components/query-state.tsx';
import { ShortId } from '../components/short-id.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import { useUrlFilter } from '../components/url-filter.ts';
import { JsonBlock } from '../components/json-block.tsx';
import { RecordRow, RecordTable } from '../components/record-table.tsx';

type StoredEvent = AdminAnswer<AdminOperations['listThreadEvents']>['events'][number];

const PATH = '/threads/{threadId}/events';

/** The stream of a Thread as it is stored, newest first. `newest` is the version that is known to be there. */
export function StoredEvents({ threadId, newest }: { threadId: string; newest: number }) {
  const [{ type }, change] = useUrlFilter(['type'] as const);
  const read = useStoredEvents(threadId);
  const { items, query } = read;
  const types = [...new Set([...items.map((event) => event.type), ...(type ? [type] : [])])].sort();
  const shown = type ? items.filter((event) => event.type === type) : items;
  const missing = newest - (items[0]?.version ?? newest);
  return (
    <>
      <Group align="flex-end" mb="sm" gap="sm">
        <FilterSelect
          label="Type"
          data={types}
          value={type}
          onChange={(chosen) => change({ type: chosen })}
          searchable
        />
        <Button variant="default" onClick={() => void query.refetch()} loading={query.isFetching}>
          {missing > 0 ? `Show ${formatCount(missing)} newer` : 'Refresh'}
        </Button>
        <Text size="sm" c="dimmed" role="status">
          {formatCount(shown.length)} shown of {formatCount(items.length)} loaded,{' '}
          {formatCount(Math.max(newest, items[0]?.version ?? 0))} stored
        </Text>
      </Group>
      <QueryState
        query={{ ...query, data: query.data && shown }}
        isEmpty={(events) => events.length === 0}
        empty="No loaded event is of this type."
      >
        {(events) => <EventsTable events={events} />}
      </QueryState>
      <LoadMore pages={read} />
    </>
  );
}

function useStoredEvents(threadId: string) {
  const params = { threadId };
  return usePagesBy({
    key: [PATH, { params }, 'pages'],
    read: (before: number | null, signal) => get(PATH, { params, query: before === null ? {} : { before } }, signal),
    next: ({ nextBefore }) => nextBefore,
    itemsOf: ({ events }) => events,
  });
}

function EventsTable({ events }: { events: StoredEvent[] }) {
  return (
    <RecordTable aria-label="Stored events" minWidth={680} columns={['Event', 'Run', 'Occurred']}>
      {events.map((event) => (
        <EventRow key={event.version} event={event} />
      ))}
    </RecordTable>
  );
}

function EventRow({ event }: { event: StoredEvent }) {
  const [isOpen, setOpen] = useState(false);
  const Chevron = isOpen ? IconChevronDown : IconChevronRight;
  return (
    <>
      <RecordRow>
        <Table.Td>
          <Group gap={6}>
            <UnstyledButton aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
              <Group gap={6} wrap="nowrap">
                <Chevron size={14} aria-hidden />
                <Text size="sm" miw={32}>
                  {event.version}
                </Text>
                <Code>{event.type}</Code>
              </Group>
            </UnstyledButton>
            {!event.public && <StatusBadge color="gray">Not in the log</StatusBadge>}
          </Group>
        </Table.Td>
        <Table.Td>{event.runId ? <ShortId id={event.runId} of="Run" to={`/runs/${event.runId}`} /> : '–'}</Table.Td>
        <Table.Td>
          <Text size="sm" component="time" dateTime={event.occurredAt}>
            {formatTime(event.occurredAt)}
          </Text>
        </Table.Td>
      </RecordRow>
      {isOpen && (
        <RecordRow>
          <Table.Td colSpan={3} maw={0}>
            <JsonBlock value={event} label={`Event ${event.version} as JSON`} maxHeight={480} />
          </Table.Td>
        </RecordRow>
      )}
    </>
  );
}
