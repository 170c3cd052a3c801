import { Anchor, Table, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { ManagedAgent } from '#contract';
import { Ago } from '../components/ago.tsx';
import { OrganizationLink } from '../components/record-link.tsx';
import { RecordRow, RecordTable } from '../components/record-table.tsx';
import { AgentState, Readiness } from './agent-state.tsx';

interface Props {
  agents: ManagedAgent[];
  label?: string;
  /** Whether the column of organizations is shown. */
  showsOrganization?: boolean;
}

/** Agents with their state. */
export function AgentTable({ agents, label = 'Agents', showsOrganization = true }: Props) {
  const organization = showsOrganization ? ['Organization'] : [];
  return (
    <RecordTable
      aria-label={label}
      minWidth={720}
      columns={['Agent', ...organization, 'Version', 'Callers', 'Readiness', 'Created']}
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
          {showsOrganization && (
            <Table.Td>
              <OrganizationLink id={agent.organizationId} name={agent.organizationName} />
            </Table.Td>
          )}
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
