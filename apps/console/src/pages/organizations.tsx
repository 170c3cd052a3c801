import { Table, Text } from '@mantine/core';
import type { OrganizationRecord } from '#contract';
import { usePages } from '../api/use-pages.ts';
import { LimitOrganization } from '../organizations/organization-limits.tsx';
import { Ago } from '../components/ago.tsx';
import { FilterBar, isFiltered } from '../components/filter-bar.tsx';
import { FilterText } from '../components/filter-text.tsx';
import { formatBytes, formatCount } from '../components/format.ts';
import { LoadMore } from '../components/load-more.tsx';
import { PageTitle } from '../components/page-title.tsx';
import { QueryState } from '../components/query-state.tsx';
import { RecordRow, RecordTable } from '../components/record-table.tsx';
import { ShortId } from '../components/short-id.tsx';
import { useUrlFilter } from '../components/url-filter.ts';

const PAGE = 25;

export default function OrganizationsPage() {
  const [filter, change] = useUrlFilter(['name'] as const);
  const organizations = usePages(
    '/organizations',
    { query: { limit: PAGE, name: filter.name || undefined } },
    'organizations',
  );
  return (
    <>
      <PageTitle title="Organizations" />
      <FilterBar {...{ filter, change }} label="Filter organizations">
        <FilterText label="Name" placeholder="Exact name" value={filter.name} onChange={(name) => change({ name })} />
      </FilterBar>
      <QueryState
        query={organizations.query}
        isEmpty={(items) => items.length === 0}
        empty={isFiltered(filter) ? 'No organization matches these filters.' : 'No organizations yet.'}
      >
        {(items) => <OrganizationTable organizations={items} />}
      </QueryState>
      <LoadMore pages={organizations} />
    </>
  );
}

function OrganizationTable({ organizations }: { organizations: OrganizationRecord[] }) {
  return (
    <RecordTable
      aria-label="Organizations"
      minWidth={800}
      columns={['Organization', 'Runs at once', 'Files', 'Bytes', 'Created', { name: 'Actions', ta: 'right' }]}
    >
      {organizations.map((organization) => (
        <OrganizationRow key={organization.id} organization={organization} />
      ))}
    </RecordTable>
  );
}

function OrganizationRow({ organization }: { organization: OrganizationRecord }) {
  const { id, name, createdAt, concurrency, files } = organization;
  return (
    <RecordRow>
      <Table.Td>
        <Text size="sm" fw={600}>
          {name}
        </Text>
        <ShortId id={id} of="organization" />
      </Table.Td>
      <Table.Td>{concurrency.runs === null ? 'no own limit' : formatCount(concurrency.runs)}</Table.Td>
      <Table.Td>
        <Used used={files.count} own={files.maxCount} most={files.limits.maxCount} format={formatCount} />
      </Table.Td>
      <Table.Td>
        <Used used={files.bytes} own={files.maxBytes} most={files.limits.maxBytes} format={formatBytes} />
      </Table.Td>
      <Table.Td>
        <Ago time={createdAt} />
      </Table.Td>
      <Table.Td ta="right">
        <LimitOrganization organization={organization} />
      </Table.Td>
    </RecordRow>
  );
}

interface UsedProps {
  used: number;
  /** The organization's own limit; null for none. */
  own: number | null;
  /** The limit that applies; null for none. */
  most: number | null;
  format: (amount: number) => string;
}

/** The amount in use and the limit. */
function Used({ used, own, most, format }: UsedProps) {
  const limit = most === null ? 'no limit' : `of ${format(most)}`;
  return (
    <>
      {format(used)}
      <Text size="xs" c="dimmed">
        {own === null && most !== null ? `${limit}, the installation’s limit` : limit}
      </Text>
    </>
  );
}
