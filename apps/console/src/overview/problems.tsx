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
  database_slow: { title: 'PostgreSQL is slow', link: { to: '/checks', label: 'Check what the service stands on' } },
  queue_away: {
    title: 'The queue does not answer',
    link: { to: '/checks', label: 'Check what the service stands on' },
  },
  redis_away: { title: 'Redis does not answer', link: { to: '/checks', label: 'Check what the service stands on' } },
  queue_paused: { title: 'The queue is paused' },
  no_worker: { title: 'No worker is alive', link: { to: '/runs', label: 'All live Runs' } },
  lease_over: { title: 'Runs have lost their worker', link: { to: '/runs', label: 'All live Runs' } },
  lost_files: { title: 'Files have lost their bytes' },
  backlog: { title: 'Runs wait for a worker', link: { to: '/runs?status=queued', label: 'All queued Runs' } },
  failed_runs: { title: 'Runs failed', link: { to: '/runs?scope=all&status=failed', label: 'All failed Runs' } },
  waiting_runs: { title: 'Runs wait for a person', link: { to: '/confirmations', label: 'All confirmations' } },
};

const ICON = { critical: IconAlertOctagon, warning: IconAlertTriangle, info: IconInfoCircle };

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
          key={problem.kind === 'failed_runs' ? problem.message.replace(/^\d+ /, '') : problem.kind}
          problem={problem}
          queue={queue}
        />
      ))}
    </Stack>
  );
}

function ProblemCard({ problem, queue }: { problem: Problem; queue: QueueStatus }) {
  const { kind, severity, message, count, since } = problem;
  const { title, link } = HELP[kind];
  const Icon = ICON[severity];
  return (
    <Alert
      role="group"
      aria-label={title}
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
      <Mending problem={problem} queue={queue} />
      {link && (
        <Anchor component={Link} href={link.to} size="sm">
          {link.label}
        </Anchor>
      )}
    </Alert>
  );
}

/** Shows the actions that solve the problem. */
function Mending({ problem, queue }: { problem: Problem; queue: QueueStatus }): ReactNode {
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
