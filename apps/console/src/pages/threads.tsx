import { Anchor, Group, Table, Text } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { Link } from 'wouter';
import type { ManagedThread } from '#contract';
import { usePages } from '../api/use-pages.ts';
import { Ago } from '../components/ago.tsx';
import { FilterBar, isFiltered } from '../components/filter-bar.tsx';
import { FilterSelect } from '../components/filter-select.tsx';
import { FilterText } from '../components/filter-text.tsx';
import { LoadMore } from '../components/load-more.tsx';
import { PageTitle } from '../components/page-title.tsx';
import classes from '../components/parts.module.css';
import { AgentPicker, OrganizationPicker } from '../components/pickers.tsx';
import { QueryState } from '../components/query-state.tsx';
import { RecordTable } from '../components/record-table.tsx';
import { ShortId } from '../components/short-id.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import { optionsOf, THREAD_STATUS, type ThreadStatusName } from '../components/status-table.ts';
import { ThreadStatus } from '../components/thread-status.tsx';
import { useUrlFilter } from '../components/url-filter.ts';

/** More than a screen shows; a row takes some milliseconds to draw. */
const PAGE = 25;
const FILTERS = ['search', 'status', 'archived', 'agentId', 'organizationId', 'userId', 'externalRef'] as const;
type Filter = Record<(typeof FILTERS)[number], string>;

export default function ThreadsPage() {
  const [filter, change] = useUrlFilter(FILTERS);
  const query = {
    ...{ limit: PAGE, search: filter.search || undefined, userId: filter.userId || undefined },
    ...{ externalRef: filter.externalRef || undefined },
    ...{ status: (filter.status || undefined) as ThreadStatusName | undefined },
    ...{ archived: (filter.archived || undefined) as 'true' | 'false' | undefined },
    ...{ agentId: filter.agentId || undefined, organizationId: filter.organizationId || undefined },
  };
  const threads = usePages('/threads', { query }, 'threads', { refetchInterval: 15_000 });
  return (
    <>
      <PageTitle title="Threads" />
      <Filters filter={filter} change={change} />
      <QueryState
        query={threads.query}
        isEmpty={(items) => items.length === 0}
        empty={isFiltered(filter) ? 'No Thread matches these filters.' : 'No Threads yet.'}
      >
        {(items) => <ThreadsTable threads={items} />}
      </QueryState>
      <LoadMore pages={threads} />
    </>
  );
}

function Filters({ filter, change }: { filter: Filter; change: (changed: Partial<Filter>) => void }) {
  return (
    <FilterBar {...{ filter, change }} label="Filter Threads">
      <FilterText
        label="Search"
        placeholder="Id, user, reference, title"
        leftSection={<IconSearch size={14} />}
        w={260}
        value={filter.search}
        onChange={(search) => change({ search })}
      />
      <FilterSelect
        label="Status"
        data={optionsOf(THREAD_STATUS)}
        value={filter.status}
        onChange={(status) => change({ status })}
      />
      <FilterSelect
        label="Archived"
        data={[
          { value: 'false', label: 'Not archived' },
          { value: 'true', label: 'Archived' },
        ]}
        value={filter.archived}
        onChange={(archived) => change({ archived })}
      />
      <AgentPicker label="Agent" value={filter.agentId} onChange={(agentId) => change({ agentId })} />
      <OrganizationPicker
        label="Organization"
        value={filter.organizationId}
        onChange={(organizationId) => change({ organizationId })}
      />
      <FilterText
        label="User id"
        placeholder="Id of the application"
        value={filter.userId}
        onChange={(userId) => change({ userId })}
      />
      <FilterText
        label="Reference"
        placeholder="Exact reference"
        value={filter.externalRef}
        onChange={(externalRef) => change({ externalRef })}
      />
    </FilterBar>
  );
}

function ThreadsTable({ threads }: { threads: ManagedThread[] }) {
  return (
    <RecordTable
      aria-label="Threads"
      highlightOnHover
      minWidth={640}
      columns={['Title', 'Status', 'Agent', 'User, reference', 'Updated']}
    >
      {threads.map((thread) => (
        <ThreadRow key={thread.id} thread={thread} />
      ))}
    </RecordTable>
  );
}

function ThreadRow({ thread }: { thread: ManagedThread }) {
  return (
    <Table.Tr>
      <Table.Td maw={{ base: 200, sm: 340 }}>
        <Anchor component={Link} href={`/threads/${thread.id}`} size="sm" lineClamp={2} className={classes.breakable}>
          {thread.title ?? 'Untitled'}
        </Anchor>
        <ShortId id={thread.id} of="Thread" />
      </Table.Td>
      <Table.Td>
        <Group gap={4}>
          <ThreadStatus status={thread.status} />
          {thread.archived && <StatusBadge color="gray">Archived</StatusBadge>}
        </Group>
      </Table.Td>
      <Table.Td>
        <Anchor component={Link} href={`/agents/${thread.agentId}`} size="sm">
          {thread.agentName}
        </Anchor>
        <Text size="xs" c="dimmed">
          {thread.organizationName}
        </Text>
      </Table.Td>
      <Table.Td maw={180}>
        <Text size="sm" truncate title={thread.userId}>
          {thread.userId}
        </Text>
        {thread.externalRef !== null && (
          <Text size="xs" c="dimmed" truncate title={thread.externalRef}>
            {thread.externalRef}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <Ago time={thread.updatedAt} />
      </Table.Td>
    </Table.Tr>
  );
}
