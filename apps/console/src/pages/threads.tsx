import { Anchor, Group, Table, Text } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { Link } from 'wouter';
import type { ManagedThread } from '#contract';
import { usePages } from '../api/use-pages.ts';
import { Ago } from '../components/ago.tsx';
import { Customer } from '../components/customer.tsx';
import { FilterBar, isFiltered } from '../components/filter-bar.tsx';
import { FilterSelect } from '../components/filter-select.tsx';
import { FilterSuggest } from '../components/filter-suggest.tsx';
import { FilterText } from '../components/filter-text.tsx';
import { LoadMore } from '../components/load-more.tsx';
import { PageTitle } from '../components/page-title.tsx';
import classes from '../components/parts.module.css';
import { AgentPicker, OrganizationPicker, PersonPicker } from '../components/pickers.tsx';
import { QueryState } from '../components/query-state.tsx';
import { RecordList } from '../components/record-list.tsx';
import { RecordRow } from '../components/record-table.tsx';
import { RunStatus } from '../components/run-status.tsx';
import { ShortId } from '../components/short-id.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import { optionsOf, THREAD_STATUS, type ThreadStatusName } from '../components/status-table.ts';
import { useUrlFilter } from '../components/url-filter.ts';

/** More rows than a screen shows. A row takes some milliseconds to draw. */
const PAGE = 25;
/** Filters by Agent, organization, customer, reference or owner. */
const OF = ['agentId', 'organizationId', 'userId', 'externalRef', 'ownerPersonId'] as const;
const FILTERS = ['search', 'status', 'archived', ...OF] as const;
type Filter = Record<(typeof FILTERS)[number], string>;

export default function ThreadsPage() {
  const [filter, change] = useUrlFilter(FILTERS);
  const query = {
    ...{ limit: PAGE, search: filter.search || undefined, userId: filter.userId || undefined },
    ...{ externalRef: filter.externalRef || undefined, ownerPersonId: filter.ownerPersonId || undefined },
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
        {(items) => (
          // With other filters, the list starts empty and keeps no row of this one.
          <ThreadsTable
            key={JSON.stringify([query, threads.query.isPlaceholderData])}
            {...{ threads: items, hasMore: threads.hasMore }}
          />
        )}
      </QueryState>
      <LoadMore pages={threads} />
    </>
  );
}

interface FilterProps {
  filter: Filter;
  change: (changed: Partial<Filter>) => void;
}

function Search({ filter, change }: FilterProps) {
  return (
    <FilterText
      label="Search"
      placeholder="Id, user, reference, title"
      leftSection={<IconSearch size={14} />}
      w={260}
      value={filter.search}
      onChange={(search) => change({ search })}
    />
  );
}

function Filters({ filter, change }: FilterProps) {
  return (
    <FilterBar {...{ filter, change }} label="Filter Threads" lead={<Search {...{ filter, change }} />}>
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
      {/* Shown only after a link from the page of a person, because most owners are services. */}
      {filter.ownerPersonId !== '' && (
        <PersonPicker
          label="Owner"
          value={filter.ownerPersonId}
          onChange={(ownerPersonId) => change({ ownerPersonId })}
        />
      )}
      <FilterSuggest
        of="userId"
        label="Customer"
        placeholder="Any"
        w={170}
        value={filter.userId}
        onChange={(userId) => change({ userId })}
      />
      <FilterSuggest
        of="externalRef"
        label="Reference"
        placeholder="Any"
        w={170}
        value={filter.externalRef}
        onChange={(externalRef) => change({ externalRef })}
      />
    </FilterBar>
  );
}

function ThreadsTable({ threads, hasMore }: { threads: ManagedThread[]; hasMore: boolean }) {
  return (
    <RecordList
      aria-label="Threads"
      noun="Thread"
      highlightOnHover
      minWidth={800}
      columns={['Newest Run', 'Title', 'Agent', 'Customer', 'Reference', 'Updated', 'Thread']}
      rows={threads}
      hasMore={hasMore}
    >
      {(thread, isGone) => <ThreadRow key={thread.id} {...{ thread, isGone }} />}
    </RecordList>
  );
}

function ThreadRow({ thread, isGone }: { thread: ManagedThread; isGone: boolean }) {
  const { id, title, status, lastRunStatus, archived, agentId, agentName, externalRef, updatedAt } = thread;
  return (
    <RecordRow isGone={isGone}>
      <Table.Td>
        <Group gap={4}>
          {lastRunStatus ? <RunStatus status={lastRunStatus} /> : <StatusBadge color="gray">No Run</StatusBadge>}
          {status === 'TERMINATED' && <StatusBadge color="grape">Terminated</StatusBadge>}
          {archived && <StatusBadge color="gray">Archived</StatusBadge>}
        </Group>
      </Table.Td>
      <Table.Td maw={{ base: 200, sm: 340 }}>
        <Anchor component={Link} href={`/threads/${id}`} size="sm" lineClamp={2} className={classes.breakable}>
          {title ?? 'Untitled'}
        </Anchor>
      </Table.Td>
      <Table.Td>
        <Anchor component={Link} href={`/agents/${agentId}`} size="sm">
          {agentName}
        </Anchor>
      </Table.Td>
      <Table.Td maw={180}>
        <Customer {...thread} list="threads" />
      </Table.Td>
      <Table.Td maw={140}>
        {externalRef === null ? (
          '–'
        ) : (
          <Text size="sm" truncate title={externalRef}>
            {externalRef}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <Ago time={updatedAt} />
      </Table.Td>
      <Table.Td>
        <ShortId id={id} of="Thread" />
      </Table.Td>
    </RecordRow>
  );
}
