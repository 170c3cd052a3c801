import { Table } from '@mantine/core';
import { usePages } from '../api/use-pages.ts';
import { Ago } from '../components/ago.tsx';
import { LoadMore } from '../components/load-more.tsx';
import { QueryState } from '../components/query-state.tsx';
import { RecordRow, RecordTable } from '../components/record-table.tsx';
import { RunActions } from '../components/run-actions.tsx';
import { hasRunError, RunError } from '../components/run-error.tsx';
import { RunStatus } from '../components/run-status.tsx';
import { RunTime } from '../components/run-time.tsx';
import { ShortId } from '../components/short-id.tsx';
import { TRIGGERS } from '../components/triggers.ts';

/** All Runs of a Thread, newest first. */
export function ThreadRuns({ threadId }: { threadId: string }) {
  const runs = usePages('/runs', { query: { threadId, limit: 50 } }, 'runs', { refetchInterval: 5_000 });
  return (
    <>
      <QueryState query={runs.query} isEmpty={(items) => items.length === 0} empty="No Runs yet.">
        {(items) => (
          <RecordTable
            aria-label="Runs of this Thread"
            minWidth={760}
            columns={[
              'Run',
              'Status',
              'Trigger',
              'Created',
              'Waited',
              'Took',
              'Error',
              { name: 'Actions', ta: 'right' },
            ]}
          >
            {items.map((run) => (
              <RecordRow key={run.id}>
                <Table.Td>
                  <ShortId id={run.id} of="Run" to={`/runs/${run.id}`} />
                </Table.Td>
                <Table.Td>
                  <RunStatus status={run.status} />
                </Table.Td>
                <Table.Td>{TRIGGERS[run.trigger]}</Table.Td>
                <Table.Td>
                  <Ago time={run.createdAt} />
                </Table.Td>
                <Table.Td>
                  <RunTime run={run} which="queueMs" />
                </Table.Td>
                <Table.Td>
                  <RunTime run={run} which="durationMs" />
                </Table.Td>
                <Table.Td maw={260}>{hasRunError(run) ? <RunError run={run} /> : '–'}</Table.Td>
                <Table.Td ta="right">
                  <RunActions run={run} isCompact />
                </Table.Td>
              </RecordRow>
            ))}
          </RecordTable>
        )}
      </QueryState>
      <LoadMore pages={runs} />
    </>
  );
}
