import type { ReactNode } from 'react';
import { Anchor, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { IconRefresh } from '@tabler/icons-react';
import { Link } from 'wouter';
import type { Overview, Problem, QueueStatus } from '#contract';
import { useOperation } from '../api/use-operation.ts';
import { ActionButton } from '../components/action-button.tsx';
import { Ago } from '../components/ago.tsx';
import { ConfirmationTable } from '../components/confirmation-table.tsx';
import { counted, formatCount } from '../components/format.ts';
import { QueryState } from '../components/query-state.tsx';
import { RunActions } from '../components/run-actions.tsx';
import { RunStatus } from '../components/run-status.tsx';
import { ShortId } from '../components/short-id.tsx';
import { SEVERITY } from '../components/status-table.ts';
import { BulkActions } from '../run/bulk-actions.tsx';
import { useBulkAction } from '../run/bulk-buttons.tsx';
import { SEVERITY_ICON } from './problem-bar.tsx';
import { anchorOf, keyOf, PROBLEM_TITLES } from './problem-words.ts';
import { QueueSwitch } from './queue-switch.tsx';
import { sinceOf } from './series.ts';
import classes from './overview.module.css';

interface LinkTo {
  to: string;
  label: string;
}

/** The page that lists all of it. */
const LINKS: Partial<Record<Problem['kind'], LinkTo>> = {
  database_slow: { to: '/checks', label: 'Checks' },
  queue_away: { to: '/checks', label: 'Checks' },
  redis_away: { to: '/checks', label: 'Checks' },
  no_worker: { to: '/runs', label: 'Live Runs' },
  lease_over: { to: '/runs?problem=lease_over', label: 'These Runs' },
  backlog: { to: '/runs?problem=backlog', label: 'These Runs' },
  provider_failing: { to: '/runs?problem=provider_failing', label: 'These Runs' },
  waiting_runs: { to: '/confirmations', label: 'All confirmations' },
};

/** Lists the problems, the worst first, each with one action. */
export function Problems({ overview }: { overview: Overview }) {
  const { problems } = overview;
  return (
    <>
      {problems.length > 0 && (
        <Stack component="section" gap="xs" aria-label="Problems" my="md">
          <Title order={2}>Problems</Title>
          {problems.map((problem) => (
            <ProblemCard key={keyOf(problem)} {...{ problem, overview }} />
          ))}
        </Stack>
      )}
      <BulkActions />
    </>
  );
}

function ProblemCard({ problem, overview }: { problem: Problem; overview: Overview }) {
  const { kind, severity, message, count, since } = problem;
  const title = PROBLEM_TITLES[kind];
  const link = linkOf(problem, overview);
  const Icon = SEVERITY_ICON[severity];
  const isOneOfSeveral = kind === 'failed_runs' || kind === 'provider_failing';
  return (
    <Paper
      withBorder
      p="sm"
      id={anchorOf(problem)}
      role="group"
      aria-label={isOneOfSeveral ? `${title}: ${message}` : title}
      className={classes.problem}
      data-severity={severity}
    >
      <Group justify="space-between" gap="sm" align="flex-start">
        <Group gap="sm" align="flex-start" wrap="nowrap" className={classes.told}>
          <Icon size={20} aria-hidden className={classes.icon} />
          <div>
            <Group gap="xs">
              <Text fw={600}>{title}</Text>
              {count !== null && <Text size="sm">{`(${formatCount(count)})`}</Text>}
              <Text size="xs" c="dimmed">
                {SEVERITY[severity].label}
                {since !== null && (
                  <>
                    , <Ago time={since} />
                  </>
                )}
              </Text>
            </Group>
            <Text size="sm">{message}</Text>
          </div>
        </Group>
        <Group gap="sm">
          {link && (
            <Anchor component={Link} href={link.to} size="sm">
              {link.label}
            </Anchor>
          )}
          <Remedy {...{ problem, overview }} queue={overview.queue} />
        </Group>
      </Group>
      <Details problem={problem} />
    </Paper>
  );
}

/** Returns the filters of failed Runs of one cause; undefined for Runs of several causes. */
function failedFilter({ kind, agentId, errorCode, cause }: Problem, overview: Overview) {
  if (kind !== 'failed_runs' || !agentId || !errorCode) return undefined;
  return { agentId, errorCode, ...(cause ? { cause } : {}), endedSince: sinceOf(overview) };
}

/** Returns the link to the Runs that the problem counts. */
function linkOf(problem: Problem, overview: Overview): LinkTo | undefined {
  const { kind, cause } = problem;
  if (kind === 'failed_runs') {
    const chosen = failedFilter(problem, overview);
    const rest = { endedSince: sinceOf(overview), ...chosen };
    const query = new URLSearchParams({ scope: 'all', status: 'failed', mayBeRetried: 'true', ...rest });
    // No filter selects Runs without a cause, or the rest of several causes.
    return { to: `/runs?${query.toString()}`, label: cause ? 'These Runs' : 'All failed Runs' };
  }
  const link = LINKS[kind];
  if (kind !== 'provider_failing' || !link || !cause) return link;
  return { ...link, to: `${link.to}&${new URLSearchParams({ cause }).toString()}` };
}

interface RemedyProps {
  problem: Problem;
  overview: Overview;
  queue: QueueStatus;
}

/** The one action that solves the problem. */
function Remedy({ problem, overview, queue }: RemedyProps): ReactNode {
  if (problem.kind === 'queue_paused') return <QueueSwitch queue={queue} />;
  const filter = failedFilter(problem, overview);
  return filter && <RetryAll filter={filter} count={problem.count ?? 0} />;
}

function RetryAll({ filter, count }: { filter: NonNullable<ReturnType<typeof failedFilter>>; count: number }) {
  const retry = useBulkAction('retry', filter);
  const label = count === 1 ? 'Retry it' : `Retry all ${formatCount(count)}`;
  return (
    <ActionButton
      action={retry}
      label={label}
      target={`${counted(count, 'Run')} with ${filter.errorCode}`}
      icon={IconRefresh}
      variant="filled"
    />
  );
}

function Details({ problem: { kind, runs } }: { problem: Problem }): ReactNode {
  if (kind === 'waiting_runs') return <Waiting />;
  return kind === 'lease_over' && runs.map((run) => <ProblemRun key={run.id} run={run} />);
}

function ProblemRun({ run }: { run: Problem['runs'][number] }) {
  return (
    <Group className={classes.run} gap="xs" justify="space-between">
      <Group gap="xs" className={classes.told}>
        <RunStatus status={run.status} />
        <ShortId id={run.id} of="Run" to={`/runs/${run.id}`} />
        <Text size="sm" fw={600}>
          {run.agentName}
        </Text>
      </Group>
      <RunActions run={run} />
    </Group>
  );
}

/** Shows the requests of the first waiting Runs. */
function Waiting() {
  const query = useOperation('/confirmations', { query: { limit: 5 } }, { refetchInterval: 5_000 });
  return (
    <QueryState query={query}>
      {({ waiting, nextCursor }) => <ConfirmationTable waiting={waiting} hasMore={nextCursor !== null} />}
    </QueryState>
  );
}
