import { Anchor, Code, Table, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { ManagedRun } from '#contract';
import { usePages } from '../api/use-pages.ts';
import { Ago } from '../components/ago.tsx';
import { isFiltered } from '../components/filter-bar.tsx';
import { shortenId } from '../components/format.ts';
import { LoadMore } from '../components/load-more.tsx';
import { PageTitle } from '../components/page-title.tsx';
import { QueryState } from '../components/query-state.tsx';
import { RunActions } from '../components/run-actions.tsx';
import classes from '../components/parts.module.css';
import { RecordTable } from '../components/record-table.tsx';
import { RunError } from '../components/run-error.tsx';
import { RunStatus } from '../components/run-status.tsx';
import { RunTime } from '../components/run-time.tsx';
import { ShortId } from '../components/short-id.tsx';
import type { RunStatusName } from '../components/status-table.ts';
import { useUrlFilter } from '../components/url-filter.ts';
import { BulkActions } from '../run/bulk-actions.tsx';
import { BulkButtons } from '../run/bulk-buttons.tsx';
import { RunFilters, RUN_FILTERS } from '../run/run-filters.tsx';

/** More rows than a screen shows. A row takes some milliseconds to draw. */
const PAGE = 25;

/** The actions come early, so that a phone shows them without scrolling. */
const COLUMNS = ['Run', 'Status', 'Actions', 'Agent', 'Thread', 'Created', 'Waited', 'Took', 'Worker', 'Error'];

/** Lists live Runs, or all, newest first. */
export default function RunsPage() {
  const [filter, change] = useUrlFilter(RUN_FILTERS);
  const { scope, within, ...filters } = filter;
  const isLive = scope !== 'all';
  const chosen = {
    status: (filters.status || undefined) as RunStatusName | undefined,
    agentId: filters.agentId || undefined,
    organizationId: filters.organizationId || undefined,
    errorCode: filters.errorCode || undefined,
    cause: filters.cause || undefined,
    userId: filters.userId || undefined,
  };
  const query = { ...chosen, limit: PAGE, scope: isLive ? ('live' as const) : ('all' as const) };
  const withinMinutes = Number(within) || 0;
  const runs = usePages('/runs', { query }, 'runs', { refetchInterval: 5_000, withinMinutes });
  const none = isLive ? 'No live Runs.' : 'No Runs yet.';
  return (
    <>
      <PageTitle title="Runs">
        <BulkButtons filter={chosen} {...{ withinMinutes, isLive }} />
      </PageTitle>
      <BulkActions />
      <RunFilters {...{ filter, change }} />
      <QueryState
        query={runs.query}
        isEmpty={(rows) => rows.length === 0}
        empty={isFiltered({ ...filters, within }) ? 'No Run matches these filters.' : none}
      >
        {(rows) => (
          <RecordTable
            highlightOnHover
            className={classes.oneLine}
            aria-label="Runs"
            minWidth={1_040}
            columns={COLUMNS}
          >
            {rows.map((run) => (
              <RunRow key={run.id} run={run} />
            ))}
          </RecordTable>
        )}
      </QueryState>
      <LoadMore pages={runs} />
    </>
  );
}

function RunRow({ run }: { run: ManagedRun }) {
  return (
    <Table.Tr>
      <Table.Td>
        <ShortId id={run.id} of="Run" to={`/runs/${run.id}`} />
      </Table.Td>
      <Table.Td>
        <RunStatus status={run.status} />
      </Table.Td>
      <Table.Td>
        <RunActions run={run} isCompact />
      </Table.Td>
      <Table.Td>
        <Anchor component={Link} href={`/agents/${run.agentId}`} size="sm">
          {run.agentName}
        </Anchor>
        <Text size="xs" c="dimmed">
          {run.organizationName}
        </Text>
      </Table.Td>
      <Table.Td>
        <ShortId id={run.threadId} of="Thread" to={`/threads/${run.threadId}`} />
      </Table.Td>
      <Table.Td>
        <Ago time={run.createdAt} />
      </Table.Td>
      <Table.Td>
        <RunTime run={run} which="queueMs" />
      </Table.Td>
      <Table.Td>
        <RunTime run={run} which="durationMs" />
      </Table.Td>
      <Table.Td>
        <Worker holder={run.work?.holder ?? null} />
      </Table.Td>
      <Table.Td maw={{ base: 160, xl: 320 }}>
        <RunError run={run} />
      </Table.Td>
    </Table.Tr>
  );
}

function Worker({ holder }: { holder: string | null }) {
  return holder === null ? '–' : <Code title={holder}>{shortenId(holder)}</Code>;
}
