import { Table, Text } from '@mantine/core';
import type { PersonRecord } from '#contract';
import { post } from '../api/client.ts';
import { usePages } from '../api/use-pages.ts';
import { Ago } from '../components/ago.tsx';
import { FilterBar, isFiltered } from '../components/filter-bar.tsx';
import { FilterText } from '../components/filter-text.tsx';
import { counted } from '../components/format.ts';
import { LoadMore } from '../components/load-more.tsx';
import { NameButton } from '../components/name-button.tsx';
import { PageTitle } from '../components/page-title.tsx';
import { OrganizationPicker } from '../components/pickers.tsx';
import { QueryState } from '../components/query-state.tsx';
import { PersonLink } from '../components/record-link.tsx';
import { RecordRow, RecordTable } from '../components/record-table.tsx';
import { ShortId } from '../components/short-id.tsx';
import { useUrlFilter } from '../components/url-filter.ts';

const PAGE = 25;

export default function PeoplePage() {
  const [filter, change] = useUrlFilter(['name', 'organizationId'] as const);
  const query = { limit: PAGE, name: filter.name || undefined, organizationId: filter.organizationId || undefined };
  const people = usePages('/people', { query }, 'people');
  return (
    <>
      <PageTitle title="People">
        <NameButton
          label="Create person"
          title="Create person"
          done={(name) => `${name} is created. Add organizations on the person’s page.`}
          save={(name) => post('/people', { body: { name } })}
        />
      </PageTitle>
      <FilterBar {...{ filter, change }} label="Filter people">
        <FilterText label="Name" placeholder="Exact name" value={filter.name} onChange={(name) => change({ name })} />
        <OrganizationPicker
          label="Organization"
          value={filter.organizationId}
          onChange={(organizationId) => change({ organizationId })}
        />
      </FilterBar>
      <QueryState
        query={people.query}
        isEmpty={(items) => items.length === 0}
        empty={isFiltered(filter) ? 'No person matches these filters.' : 'No people yet.'}
      >
        {(items) => <PeopleTable people={items} />}
      </QueryState>
      <LoadMore pages={people} />
    </>
  );
}

function PeopleTable({ people }: { people: PersonRecord[] }) {
  return (
    <RecordTable aria-label="People" minWidth={500} columns={['Person', 'Member of', 'Created', 'Id']}>
      {people.map(({ id, name, organizationIds, createdAt }) => (
        <RecordRow key={id}>
          <Table.Td>
            <PersonLink id={id} name={name} />
          </Table.Td>
          <Table.Td>
            <Text size="sm">{counted(organizationIds.length, 'organization')}</Text>
          </Table.Td>
          <Table.Td>
            <Ago time={createdAt} />
          </Table.Td>
          <Table.Td>
            <ShortId id={id} of="person" />
          </Table.Td>
        </RecordRow>
      ))}
    </RecordTable>
  );
}
