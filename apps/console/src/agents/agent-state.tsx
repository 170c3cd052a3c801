import { Group, Text } from '@mantine/core';
import type { ManagedAgent } from '#contract';
import { useOperation } from '../api/use-operation.ts';
import { StatusBadge } from '../components/status-badge.tsx';

/** Whether callers reach it, and why not. */
export function AgentState({ agent }: { agent: ManagedAgent }) {
  return (
    <Group gap={4}>
      {agent.deletedAt !== null && <StatusBadge color="red">Deleted</StatusBadge>}
      <StatusBadge color={agent.published ? 'teal' : 'gray'}>
        {agent.published ? 'Published' : 'Not published'}
      </StatusBadge>
      {!agent.apiEnabled && <StatusBadge color="orange">Disabled for callers</StatusBadge>}
      {agent.access === 'invited' && <StatusBadge color="indigo">Invited only</StatusBadge>}
    </Group>
  );
}

/** Whether the process that answers could run it now. */
export function Readiness({ agentId }: { agentId: string }) {
  const { data, error } = useOperation('/agents/{agentId}', { params: { agentId } });
  if (error) return <Text size="xs">Unavailable</Text>;
  if (data === undefined) return <Text size="xs">…</Text>;
  const { manifest, readiness, warnings } = data;
  if (manifest === null) return <StatusBadge color="gray">No version</StatusBadge>;
  if (readiness.length > 0) return <StatusBadge color="red">Cannot run: {readiness[0]!.message}</StatusBadge>;
  if (warnings.length > 0) return <StatusBadge color="orange">Can run, with warnings</StatusBadge>;
  return <StatusBadge color="teal">Can run</StatusBadge>;
}
