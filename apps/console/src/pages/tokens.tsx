import type { TokenRecord } from '#contract';
import { usePages } from '../api/use-pages.ts';
import { FilterBar, isFiltered } from '../components/filter-bar.tsx';
import { FilterSelect } from '../components/filter-select.tsx';
import { FilterText } from '../components/filter-text.tsx';
import { LoadMore } from '../components/load-more.tsx';
import { PageTitle } from '../components/page-title.tsx';
import { QueryState } from '../components/query-state.tsx';
import { useUrlFilter } from '../components/url-filter.ts';
import { AgentPicker, OrganizationPicker, PersonPicker } from '../components/pickers.tsx';
import { optionsOf } from '../components/status-table.ts';
import { MintToken } from '../tokens/mint-token.tsx';
import { TokenTable } from '../tokens/token-table.tsx';
import { TOKEN_KINDS, TOKEN_STATUSES } from '../tokens/token-look.ts';

const PAGE = 25;
const FILTERS = ['kind', 'status', 'name', 'personId', 'organizationId', 'agentId'] as const;

export default function TokensPage() {
  const [filter, change] = useUrlFilter(FILTERS);
  const tokens = usePages(
    '/tokens',
    {
      query: {
        limit: PAGE,
        kind: (filter.kind || undefined) as TokenRecord['kind'] | undefined,
        status: (filter.status || undefined) as TokenRecord['status'] | undefined,
        name: filter.name || undefined,
        personId: filter.personId || undefined,
        organizationId: filter.organizationId || undefined,
        agentId: filter.agentId || undefined,
      },
    },
    'tokens',
  );
  return (
    <>
      <PageTitle title="Tokens">
        <MintToken />
      </PageTitle>
      <Filters filter={filter} change={change} />
      <QueryState
        query={tokens.query}
        isEmpty={(items) => items.length === 0}
        empty={isFiltered(filter) ? 'No token matches these filters.' : 'No tokens yet.'}
      >
        {(items) => <TokenTable tokens={items} />}
      </QueryState>
      <LoadMore pages={tokens} />
    </>
  );
}

type Filter = Record<(typeof FILTERS)[number], string>;

function Filters({ filter, change }: { filter: Filter; change: (changed: Partial<Filter>) => void }) {
  return (
    <FilterBar {...{ filter, change }} label="Filter tokens">
      <FilterSelect
        label="Kind"
        data={optionsOf(TOKEN_KINDS)}
        value={filter.kind}
        onChange={(kind) => change({ kind })}
      />
      <FilterSelect
        label="Status"
        data={optionsOf(TOKEN_STATUSES)}
        value={filter.status}
        onChange={(status) => change({ status })}
      />
      <FilterText label="Name" placeholder="Exact name" value={filter.name} onChange={(name) => change({ name })} />
      <PersonPicker label="Person" value={filter.personId} onChange={(personId) => change({ personId })} />
      <OrganizationPicker
        label="Organization"
        value={filter.organizationId}
        onChange={(organizationId) => change({ organizationId })}
      />
      <AgentPicker label="Agent" value={filter.agentId} onChange={(agentId) => change({ agentId })} />
    </FilterBar>
  );
}
