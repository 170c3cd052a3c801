import { Anchor, Table, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { LiveProblem, ManagedRun } from '#contract';
import { usePages } from '../api/use-pages.ts';
import { Ago } from '../components/ago.tsx';
import { Customer } from '../components/customer.tsx';
import { isFiltered } from '../components/filter-bar.tsx';
import { LoadMore } from '../components/load-more.tsx';
import { PageTitle } from '../components/page-title.tsx';
import { QueryState } from '../components/query-state.tsx';
import { RecordList } from '../components/record-list.tsx';
import { RecordRow, type Column } from '../components/record-table.tsx';
import { RunActions } from '../components/run-actions.tsx';
import { hasRunError, RunError } from '../components/run-error.tsx';
import { RunStatus } from '../components/run-status.tsx';
import { RunTime } from '../components/run-time.tsx';
import { ShortId } from '../components/short-id.tsx';
import type { RunStatusName } from '../components/status-table.ts';
import { useUrlFilter } from '../components/url-filter.ts';
import { BulkActions } from '../run/bulk-actions.tsx';
import { BulkButtons } from '../run/bulk-buttons.tsx';
import { RunFilters, RUN_FILTERS, showsLive } from '../run/run-filters.tsx';

/** More rows than a screen shows. A row takes some milliseconds to draw. */
const PAGE = 25;

const COLUMNS: readonly Column[] = [
  ...['Status', 'Error', 'Agent', 'Customer', 'Title', 'When', 'Took', 'Run'],
  { name: 'Actions', ta: 'right' },
];

/** Lists live Runs or all Runs, newest first. */
export default function RunsPage() {
  const [filter, change] = useUrlFilter(RUN_FILTERS);
  const { scope: _, within, ...filters } = filter;
  const isLive = showsLive(filter);
  const chosen = {
    status: (filters.status || undefined) as RunStatusName | undefined,
    agentId: filters.agentId || undefined,
    organizationId: filters.organizationId || undefined,
    errorCode: filters.errorCode || undefined,
    cause: filters.cause || undefined,
    userId: filters.userId || undefined,
    externalRef: filters.externalRef || undefined,
    endedSince: filters.endedSince || undefined,
  };
  const mayBeRetried = filters.mayBeRetried === 'true' ? ('true' as const) : undefined;
  const problem = (filters.problem || undefined) as LiveProblem | undefined;
  const query = { ...chosen, mayBeRetried, problem, limit: PAGE, scope: isLive ? ('live' as const) : ('all' as const) };
  const withinMinutes = Number(within) || 0;
  const runs = usePages('/runs', { query }, 'runs', { refetchInterval: 5_000, withinMinutes });
  const none = isLive ? 'No live Runs.' : 'No Runs yet.';
  return (
    <>
      <PageTitle title="Runs">
        {/* A bulk action cannot choose by problem: it would change more Runs than are shown. */}
        {!problem && <BulkButtons filter={chosen} {...{ withinMinutes, isLive }} />}
      </PageTitle>
      <BulkActions />
      <RunFilters {...{ filter, change }} />
      <QueryState
        query={runs.query}
        isEmpty={(rows) => rows.length === 0}
        empty={isFiltered({ ...filters, within }) ? 'No Run matches these filters.' : none}
      >
        {(rows) => (
          <RecordList
            // With other filters, the list starts empty and keeps no row of this one.
            key={JSON.stringify([query, within, runs.query.isPlaceholderData])}
            highlightOnHover
            aria-label="Runs"
            noun="Run"
            minWidth={1_040}
            columns={COLUMNS}
            rows={rows}
            hasMore={runs.hasMore}
          >
            {(run, isGone) => <RunRow key={run.id} {...{ run, isGone }} />}
          </RecordList>
        )}
      </QueryState>
      <LoadMore pages={runs} />
    </>
  );
}

function RunRow({ run, isGone }: { run: ManagedRun; isGone: boolean }) {
  const { id, status, agentId, agentName, organizationId, organizationName, userId, threadId, threadTitle, createdAt } =
    run;
  return (
    <RecordRow isGone={isGone}>
      <Table.Td>
        <RunStatus status={status} />
      </Table.Td>
      <Table.Td maw={{ base: 200, xl: 320 }}>{hasRunError(run) ? <RunError run={run} /> : '–'}</Table.Td>
      <Table.Td>
        <Anchor component={Link} href={`/agents/${agentId}`} size="sm">
          {agentName}
        </Anchor>
      </Table.Td>
      <Table.Td maw={180}>
        <Customer {...{ userId, organizationId, organizationName }} />
      </Table.Td>
      <Table.Td maw={{ base: 200, xl: 320 }}>
        <Anchor
          component={Link}
          href={`/threads/${threadId}`}
          size="sm"
          truncate
          display="block"
          title={threadTitle ?? ''}
        >
          {threadTitle ?? 'Untitled'}
        </Anchor>
      </Table.Td>
      <Table.Td>
        <Text span size="sm" style={{ whiteSpace: 'nowrap' }}>
          <Ago time={createdAt} />
        </Text>
      </Table.Td>
      <Table.Td>
        <RunTime run={run} which="durationMs" />
      </Table.Td>
      <Table.Td>
        <ShortId id={id} of="Run" to={`/runs/${id}`} />
      </Table.Td>
      <Table.Td ta="right">{!isGone && <RunActions run={run} isCompact />}</Table.Td>
    </RecordRow>
  );
}
