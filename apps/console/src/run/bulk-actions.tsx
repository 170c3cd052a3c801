import { useState } from 'react';
import { Alert, Button, Group, Progress, Stack, Table, Text } from '@mantine/core';
import { IconPlayerStop } from '@tabler/icons-react';
import type { BulkAction } from '#contract';
import { post } from '../api/client.ts';
import { useOperation } from '../api/use-operation.ts';
import { usePages } from '../api/use-pages.ts';
import { ActionButton } from '../components/action-button.tsx';
import { useAction } from '../components/action.ts';
import { Ago } from '../components/ago.tsx';
import { counted } from '../components/format.ts';
import { LoadMore } from '../components/load-more.tsx';
import { QueryState } from '../components/query-state.tsx';
import { RecordRow, RecordTable } from '../components/record-table.tsx';
import { ShortId } from '../components/short-id.tsx';
import { BulkReasons } from './bulk-buttons.tsx';
import { BULK_WORDS } from './bulk-words.ts';

const RUNNING_EVERY_MS = 1_000;
const IDLE_EVERY_MS = 5_000;
/** How long an ended bulk action is shown, milliseconds. */
const SHOWN_MS = 15 * 60_000;
/** The newest that are looked through. */
const READ = 20;

/** The bulk actions of all operators that run, or that ended some minutes ago. */
export function BulkActions() {
  const { data, dataUpdatedAt } = useOperation(
    '/bulk-actions',
    { query: { limit: READ } },
    {
      refetchInterval: (answer) =>
        answer?.bulkActions.some(({ state }) => state === 'running') ? RUNNING_EVERY_MS : IDLE_EVERY_MS,
    },
  );
  const shown = (data?.bulkActions ?? []).filter(
    ({ endedAt }) => endedAt === null || Date.parse(endedAt) > dataUpdatedAt - SHOWN_MS,
  );
  if (shown.length === 0) return null;
  return (
    <Stack component="section" gap="xs" mb="md" aria-label="Bulk actions">
      {shown.map((bulk) => (
        <BulkCard key={bulk.id} bulk={bulk} />
      ))}
    </Stack>
  );
}

function BulkCard({ bulk }: { bulk: BulkAction }) {
  const { id, action, state, runs, done, notDone, left, startedBy, startedAt } = bulk;
  const { name, done: doneWord } = BULK_WORDS[action];
  const [isOpen, setOpen] = useState(false);
  const stop = useAction(() => post('/bulk-actions/{bulkActionId}/stop', { params: { bulkActionId: id } }), {
    done: 'The bulk action is stopped.',
  });
  const isRunning = state === 'running';
  return (
    <Alert
      role="group"
      variant="default"
      aria-label={`${name} of ${counted(runs, 'Run')}`}
      title={
        <Group justify="space-between" gap="xs">
          <span>
            {name} of {counted(runs, 'Run')}{' '}
            <Text span size="xs" c="dimmed">
              by {startedBy?.name}, <Ago time={startedAt} />
            </Text>
          </span>
          {isRunning && (
            <ActionButton action={stop} label="Stop" target={`bulk action ${id}`} icon={IconPlayerStop} size="xs" />
          )}
        </Group>
      }
    >
      {isRunning && (
        <Progress
          value={(100 * (done + notDone)) / Math.max(runs, 1)}
          size="sm"
          mb="xs"
          aria-label={`${name}: progress`}
        />
      )}
      <Text size="sm" role="status" aria-live={isRunning ? 'off' : 'polite'}>
        {done} {doneWord}
        {isRunning ? `, ${left} left` : state === 'stopped' ? `. Stopped: ${counted(left, 'Run')} unchanged` : ''}.
      </Text>
      <BulkReasons bulk={bulk} />
      {notDone > 0 && (
        <Button variant="default" size="compact-xs" mt="xs" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Hide' : 'Show'} the Runs that were not {doneWord}
        </Button>
      )}
      {isOpen && <Unchanged id={id} />}
    </Alert>
  );
}

function Unchanged({ id }: { id: string }) {
  const call = { params: { bulkActionId: id }, query: { limit: 25, outcome: 'not_done' as const } };
  const runs = usePages('/bulk-actions/{bulkActionId}/runs', call, 'runs');
  return (
    <>
      <QueryState query={runs.query}>
        {(rows) => (
          <RecordTable aria-label="Unchanged Runs" minWidth={360} columns={['Run', 'Thread', 'Reason']}>
            {rows.map((run) => (
              <RecordRow key={run.id}>
                <Table.Td>
                  <ShortId id={run.id} of="Run" to={`/runs/${run.id}`} />
                </Table.Td>
                <Table.Td>
                  <ShortId id={run.threadId} of="Thread" to={`/threads/${run.threadId}`} />
                </Table.Td>
                <Table.Td>{run.reason}</Table.Td>
              </RecordRow>
            ))}
          </RecordTable>
        )}
      </QueryState>
      <LoadMore pages={runs} />
    </>
  );
}
