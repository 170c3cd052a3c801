import { Code, Switch } from '@mantine/core';
import { usePages } from '../api/use-pages.ts';
import { AgentTable } from '../agents/agent-table.tsx';
import { FilterBar, isFiltered } from '../components/filter-bar.tsx';
import { FilterText } from '../components/filter-text.tsx';
import { LoadMore } from '../components/load-more.tsx';
import { PageTitle } from '../components/page-title.tsx';
import { QueryState } from '../components/query-state.tsx';
import { useUrlFilter } from '../components/url-filter.ts';
import { OrganizationPicker } from '../components/pickers.tsx';

/** A small page, because the readiness of each Agent needs its own request. */
const PAGE = 25;

export default function AgentsPage() {
  const [filter, change] = useUrlFilter(['organizationId', 'name', 'deleted'] as const);
  const agents = usePages(
    '/agents',
    {
      query: {
        limit: PAGE,
        organizationId: filter.organizationId || undefined,
        name: filter.name || undefined,
        deleted: filter.deleted === 'true' ? 'true' : undefined,
      },
    },
    'agents',
  );
  return (
    <>
      <PageTitle title="Agents" />
      <FilterBar {...{ filter, change }} label="Filter Agents">
        <OrganizationPicker
          label="Organization"
          value={filter.organizationId}
          onChange={(organizationId) => change({ organizationId })}
        />
        <FilterText label="Name" placeholder="Exact name" value={filter.name} onChange={(name) => change({ name })} />
        <Switch
          label="Deleted only"
          mb={6}
          checked={filter.deleted === 'true'}
          onChange={(event) => change({ deleted: event.currentTarget.checked ? 'true' : '' })}
        />
      </FilterBar>
      <QueryState
        query={agents.query}
        isEmpty={(items) => items.length === 0}
        empty={
          isFiltered(filter) ? (
            'No Agent matches these filters.'
          ) : (
            <>
              No Agents yet. <Code>spool agent apply</Code> creates them from manifests.
            </>
          )
        }
      >
        {(items) => <AgentTable agents={items} />}
      </QueryState>
      <LoadMore pages={agents} />
    </>
  );
}
