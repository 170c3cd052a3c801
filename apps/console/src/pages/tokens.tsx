import { Table, Text } from '@mantine/core';
import type { TokenRecord } from '#contract';
import { usePages } from '../api/use-pages.ts';
import { Ago } from '../components/ago.tsx';
import { FilterBar, isFiltered } from '../components/filter-bar.tsx';
import { FilterSelect } from '../components/filter-select.tsx';
import { FilterText } from '../components/filter-text.tsx';
import { counted } from '../components/format.ts';
import { LoadMore } from '../components/load-more.tsx';
import { PageTitle } from '../components/page-title.tsx';
import { QueryState } from '../components/query-state.tsx';
import { ShortId } from '../components/short-id.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import { useUrlFilter } from '../components/url-filter.ts';
import { AgentPicker, OrganizationPicker, PersonPicker } from '../components/pickers.tsx';
import { RecordRow, RecordTable } from '../components/record-table.tsx';
import { optionsOf } from '../components/status-table.ts';
import { MintToken } from '../tokens/mint-token.tsx';
import { TokenActions } from '../tokens/token-actions.tsx';
import { LimitsInForce } from '../tokens/token-limits.tsx';
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

function TokenTable({ tokens }: { tokens: TokenRecord[] }) {
  return (
    <RecordTable
      aria-label="Tokens"
      minWidth={1000}
      columns={['Token', 'Kind', 'Owner', 'Status', 'Limits', 'Last used', 'Expires', { name: 'Actions', ta: 'right' }]}
    >
      {tokens.map((token) => (
        <TokenRow key={token.id} token={token} />
      ))}
    </RecordTable>
  );
}

function TokenRow({ token }: { token: TokenRecord }) {
  return (
    <RecordRow>
      <Table.Td>
        <Text size="sm" fw={600}>
          {token.name}
        </Text>
        <ShortId id={token.id} of="token" />
      </Table.Td>
      <Table.Td>
        <StatusBadge color={TOKEN_KINDS[token.kind].color}>{TOKEN_KINDS[token.kind].label}</StatusBadge>
      </Table.Td>
      <Table.Td>
        <Whose token={token} />
      </Table.Td>
      <Table.Td>
        <StatusBadge color={TOKEN_STATUSES[token.status].color}>{TOKEN_STATUSES[token.status].label}</StatusBadge>
        <Since token={token} />
      </Table.Td>
      <Table.Td>
        <LimitsInForce token={token} />
      </Table.Td>
      <Table.Td>{token.lastUsedAt === null ? 'never' : <Ago time={token.lastUsedAt} />}</Table.Td>
      <Table.Td>{token.expiresAt === null ? 'never' : <Ago time={token.expiresAt} />}</Table.Td>
      <Table.Td>{token.status === 'active' && <TokenActions token={token} />}</Table.Td>
    </RecordRow>
  );
}

function Whose({ token }: { token: TokenRecord }) {
  if (token.kind === 'operator') return <>operators</>;
  if (token.kind === 'person') return <>{token.personName}</>;
  return (
    <>
      {token.organizationName}
      <Text size="xs" c="dimmed">
        {counted(token.agentIds.length, 'Agent')}
        {token.allowAttribution && ', on behalf of people'}
      </Text>
    </>
  );
}

/** The last that became of its secret. */
function Since({ token }: { token: TokenRecord }) {
  const [what, time] =
    token.revokedAt !== null ? ['', token.revokedAt] : token.rotatedAt !== null ? ['rotated ', token.rotatedAt] : [];
  if (what === undefined) return null;
  return (
    <Text size="xs" c="dimmed">
      {what}
      <Ago time={time} />
    </Text>
  );
}
