import { Table } from '@mantine/core';
import type { OrganizationRecord } from '#contract';
import { post } from '../api/client.ts';
import { usePages } from '../api/use-pages.ts';
import { Bytes, ConcurrentRuns, Files } from '../organizations/limits-in-use.tsx';
import { LimitOrganization } from '../organizations/organization-limits.tsx';
import { Ago } from '../components/ago.tsx';
import { FilterBar, isFiltered } from '../components/filter-bar.tsx';
import { FilterText } from '../components/filter-text.tsx';
import { LoadMore } from '../components/load-more.tsx';
import { NameButton } from '../components/name-button.tsx';
import { PageTitle } from '../components/page-title.tsx';
import { QueryState } from '../components/query-state.tsx';
import { OrganizationLink } from '../components/record-link.tsx';
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
      <PageTitle title="Organizations">
        <NameButton
          label="Create organization"
          title="Create organization"
          done={(name) => `${name} is created.`}
          save={(name) => post('/organizations', { body: { name } })}
        />
      </PageTitle>
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
      columns={['Organization', 'Runs at the same time', 'Files', 'Bytes', 'Created', { name: 'Actions', ta: 'right' }]}
    >
      {organizations.map((organization) => (
        <OrganizationRow key={organization.id} organization={organization} />
      ))}
    </RecordTable>
  );
}

function OrganizationRow({ organization }: { organization: OrganizationRecord }) {
  const { id, name, createdAt } = organization;
  return (
    <RecordRow>
      <Table.Td>
        <OrganizationLink id={id} name={name} />
        <div>
          <ShortId id={id} of="organization" />
        </div>
      </Table.Td>
      <Table.Td>
        <ConcurrentRuns organization={organization} />
      </Table.Td>
      <Table.Td>
        <Files organization={organization} />
      </Table.Td>
      <Table.Td>
        <Bytes organization={organization} />
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
