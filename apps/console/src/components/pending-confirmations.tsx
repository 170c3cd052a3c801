import { Group, Paper, Title } from '@mantine/core';
import { IconHandStop } from '@tabler/icons-react';
import type { WaitingRun } from '#contract';
import { useOperation } from '../api/use-operation.ts';
import { ConfirmationTable } from './confirmation-table.tsx';
import { QueryState } from './query-state.tsx';

/** What a Thread, or one of its Runs, asks a person; nothing where it asks nothing. */
export function PendingConfirmations({ threadId, runId }: { threadId: string; runId?: string }) {
  const isMeant = (run: WaitingRun): boolean => runId === undefined || run.runId === runId;
  const asked = useOperation('/confirmations', { query: { threadId } }, { refetchInterval: 5_000 });
  if (asked.data === undefined && asked.error === null) return null;
  return <QueryState query={asked}>{({ waiting }) => <Pending waiting={waiting.filter(isMeant)} />}</QueryState>;
}

function Pending({ waiting }: { waiting: WaitingRun[] }) {
  if (waiting.length === 0) return null;
  return (
    <Paper component="section" withBorder p="sm" bd="2px solid orange.6" aria-label="Pending confirmations">
      <Group gap="xs" mb="xs">
        <IconHandStop size={18} aria-hidden />
        <Title order={2}>Decision needed</Title>
      </Group>
      <ConfirmationTable waiting={waiting} hasMore={false} isOfThread />
    </Paper>
  );
}
