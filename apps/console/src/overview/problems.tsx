import type { ReactNode } from 'react';
import { Alert, Anchor, Group, Stack, Text } from '@mantine/core';
import { IconAlertOctagon, IconAlertTriangle, IconCircleCheck, IconInfoCircle } from '@tabler/icons-react';
import { Link } from 'wouter';
import type { Overview, Problem, QueueStatus } from '#contract';
import { useOperation } from '../api/use-operation.ts';
import { Ago } from '../components/ago.tsx';
import { ConfirmationCard } from '../components/confirmation-card.tsx';
import { QueryState } from '../components/query-state.tsx';
import { QueueSwitch } from './queue-switch.tsx';
import { RunActions } from '../components/run-actions.tsx';
import { RunStatus } from '../components/run-status.tsx';
import { ShortId } from '../components/short-id.tsx';
import { SEVERITY } from '../components/status-table.ts';
import classes from './overview.module.css';

interface Help {
  title: string;
  /** The page that lists all of it. */
  link?: { to: string; label: string };
}

const HELP: Record<Problem['kind'], Help> = {
  database_slow: { title: 'PostgreSQL is slow', link: { to: '/checks', label: 'Checks' } },
  queue_away: {
    title: 'The queue does not answer',
    link: { to: '/checks', label: 'Checks' },
  },
  redis_away: { title: 'Redis does not answer', link: { to: '/checks', label: 'Checks' } },
  queue_paused: { title: 'The queue is paused' },
  no_worker: { title: 'No worker is alive', link: { to: '/runs', label: 'All live Runs' } },
  lease_over: { title: 'Runs have lost their worker', link: { to: '/runs', label: 'All live Runs' } },
  lost_files: { title: 'Files have lost their bytes' },
  backlog: { title: 'Runs wait for a worker', link: { to: '/runs?status=queued', label: 'All queued Runs' } },
  provider_failing: { title: 'Runs wait for a model provider' },
  failed_runs: { title: 'Runs failed', link: { to: '/runs?scope=all&status=failed', label: 'All failed Runs' } },
  waiting_runs: { title: 'Runs wait for a person', link: { to: '/confirmations', label: 'All confirmations' } },
};

const ICON = { critical: IconAlertOctagon, warning: IconAlertTriangle, info: IconInfoCircle };

/** Kinds with several problems, which differ in what follows the count. */
const SEVERAL: Problem['kind'][] = ['provider_failing', 'failed_runs'];

interface Props {
  overview: Overview;
  /** Whether the overview is current. An old one does not prove that all is well. */
  isNow: boolean;
}

/** Lists the problems, the worst first, each with its remedy. */
export function Problems({ overview: { problems, queue, at }, isNow }: Props) {
  return (
    <Stack component="section" gap="xs" aria-label="Problems" mb="md">
      {problems.length === 0 && (
        <Alert color={isNow ? 'teal' : 'gray'} icon={<IconCircleCheck size={18} />} py="xs">
          {isNow ? (
            'No problems: nothing needs attention.'
          ) : (
            <>
              No problems <Ago time={at} />.
            </>
          )}
        </Alert>
      )}
      {problems.map((problem) => (
        <ProblemCard
          key={SEVERAL.includes(problem.kind) ? problem.message.replace(/^\d+ /, '') : problem.kind}
          problem={problem}
          queue={queue}
        />
      ))}
    </Stack>
  );
}

function ProblemCard({ problem, queue }: { problem: Problem; queue: QueueStatus }) {
  const { kind, severity, message, count, since } = problem;
  const { title } = HELP[kind];
  const link = linkOf(problem);
  const Icon = ICON[severity];
  return (
    <Alert
      role="group"
      aria-label={SEVERAL.includes(kind) ? `${title}: ${message}` : title}
      variant="default"
      classNames={{ root: classes.problem, body: classes.body }}
      data-severity={severity}
      icon={<Icon size={20} />}
      title={
        <Group gap="xs">
          <span>{title}</span>
          {count !== null && <Text span size="sm">{`(${count})`}</Text>}
          <Text span size="xs" c="dimmed">
            {SEVERITY[severity].label}
            {since !== null && (
              <>
                , <Ago time={since} />
              </>
            )}
          </Text>
        </Group>
      }
    >
      <Text size="sm" mb="xs">
        {message}
      </Text>
      <Remedy problem={problem} queue={queue} />
      {link && (
        <Anchor component={Link} href={link.to} size="sm">
          {link.label}
        </Anchor>
      )}
    </Alert>
  );
}

/** Returns the link to all affected items: for failed Runs of one cause, those of their Agent with their error. */
function linkOf({ kind, agentId, errorCode }: Problem): Help['link'] {
  const { link } = HELP[kind];
  if (!link || !agentId || !errorCode) return link;
  return { to: `${link.to}&${new URLSearchParams({ agentId, errorCode })}`, label: 'All these Runs' };
}

/** Shows the actions that solve the problem. */
function Remedy({ problem, queue }: { problem: Problem; queue: QueueStatus }): ReactNode {
  if (problem.kind === 'queue_paused') return <QueueSwitch queue={queue} />;
  if (problem.kind === 'waiting_runs') return <Waiting />;
  return problem.runs.map((run) => <ProblemRun key={run.id} run={run} />);
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
        {run.error && (
          <Text size="sm" lineClamp={2}>
            {run.error.code}: {run.error.message}
          </Text>
        )}
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
      {({ waiting }) => (
        <Stack gap="xs" mb="xs">
          {waiting.map((run) => (
            <ConfirmationCard key={run.runId} waiting={run} />
          ))}
        </Stack>
      )}
    </QueryState>
  );
}
