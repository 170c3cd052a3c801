import { Anchor, Code, Switch, Table, Text } from '@mantine/core';
import type { ManagedAgent } from '#contract';
import { Link } from 'wouter';
import { usePages } from '../api/use-pages.ts';
import { AgentState, Readiness } from '../agents/agent-state.tsx';
import { Ago } from '../components/ago.tsx';
import { FilterBar, isFiltered } from '../components/filter-bar.tsx';
import { FilterText } from '../components/filter-text.tsx';
import { LoadMore } from '../components/load-more.tsx';
import { PageTitle } from '../components/page-title.tsx';
import { QueryState } from '../components/query-state.tsx';
import { useUrlFilter } from '../components/url-filter.ts';
import { OrganizationPicker } from '../components/pickers.tsx';
import { RecordRow, RecordTable } from '../components/record-table.tsx';

/** Few, because whether each can run is asked for one by one. */
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

function AgentTable({ agents }: { agents: ManagedAgent[] }) {
  return (
    <RecordTable
      aria-label="Agents"
      minWidth={720}
      columns={['Agent', 'Organization', 'Version', 'Callers', 'Readiness', 'Created']}
    >
      {agents.map((agent) => (
        <RecordRow key={agent.id}>
          <Table.Td maw={360}>
            <Anchor component={Link} href={`/agents/${agent.id}`} size="sm" fw={600}>
              {agent.name}
            </Anchor>
            <Text size="xs" c="dimmed" lineClamp={2}>
              {agent.description}
            </Text>
          </Table.Td>
          <Table.Td>{agent.organizationName}</Table.Td>
          <Table.Td>{agent.liveVersion ?? 'none'}</Table.Td>
          <Table.Td>
            <AgentState agent={agent} />
          </Table.Td>
          <Table.Td>{agent.deletedAt === null && <Readiness agentId={agent.id} />}</Table.Td>
          <Table.Td style={{ whiteSpace: 'nowrap' }}>
            <Ago time={agent.createdAt} />
          </Table.Td>
        </RecordRow>
      ))}
    </RecordTable>
  );
}
