import { Alert, Anchor, Group } from '@mantine/core';
import { IconAlertOctagon, IconAlertTriangle, IconCircleCheck, IconInfoCircle } from '@tabler/icons-react';
import type { Overview, Problem } from '#contract';
import { Ago } from '../components/ago.tsx';
import { formatCount } from '../components/format.ts';
import { anchorOf, keyOf, PROBLEM_TITLES } from './problem-words.ts';
import classes from './overview.module.css';

export const SEVERITY_ICON: Record<Problem['severity'], typeof IconInfoCircle> = {
  critical: IconAlertOctagon,
  warning: IconAlertTriangle,
  info: IconInfoCircle,
};

interface Props {
  overview: Overview;
  /** Whether the overview is current. An old one does not prove that all is well. */
  isNow: boolean;
}

/** Names the problems at the top of the page, the worst first, with links to them; or says that there are none. */
export function ProblemBar({ overview: { problems, at }, isNow }: Props) {
  if (problems.length === 0) {
    return (
      <Alert color={isNow ? 'teal' : 'gray'} icon={<IconCircleCheck size={18} />} py="xs" mb="sm">
        {isNow ? (
          'No problems: nothing needs attention.'
        ) : (
          <>
            No problems <Ago time={at} />.
          </>
        )}
      </Alert>
    );
  }
  return (
    <Group component="nav" aria-label="Problems at a glance" gap="xs" mb="sm">
      {problems.map((problem) => {
        const { severity, kind, count } = problem;
        const Icon = SEVERITY_ICON[severity];
        return (
          <Anchor
            key={keyOf(problem)}
            href={`#${anchorOf(problem)}`}
            size="sm"
            className={classes.glance}
            data-severity={severity}
          >
            <Icon size={16} aria-hidden /> {PROBLEM_TITLES[kind]}
            {count !== null && ` (${formatCount(count)})`}
          </Anchor>
        );
      })}
    </Group>
  );
}
