import { SimpleGrid, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { Overview } from '#contract';
import { formatCount } from '../components/format.ts';
import { StatusDot } from '../components/status-dot.tsx';
import { hasEnded, RUN_STATUS, RUN_STATUSES } from '../components/status-table.ts';
import { sinceOf } from './series.ts';
import classes from './overview.module.css';
import { nameOfWindow } from '../components/windows.ts';

/** Live Runs by status now, ended ones within the window; each leads to them. */
export function Counts({ overview }: { overview: Overview }) {
  const { runs, windowMinutes } = overview;
  return (
    <SimpleGrid component="section" aria-label="Runs by status" cols={{ base: 2, xs: 4, lg: 8 }} spacing="xs" mb="sm">
      {RUN_STATUSES.map((status) => {
        const when = hasEnded(status) ? `in ${nameOfWindow(windowMinutes)}` : 'now';
        const query = hasEnded(status)
          ? `scope=all&status=${status}&endedSince=${sinceOf(overview)}`
          : `status=${status}`;
        return (
          <Link key={status} href={`/runs?${query}`} className={classes.tile}>
            <Text size="xs" truncate>
              <StatusDot color={RUN_STATUS[status].color} /> {RUN_STATUS[status].label}
            </Text>
            <Text size="xl" fw={600} lh={1.3}>
              {formatCount(runs[status] ?? 0)}
            </Text>
            <Text size="xs" c="dimmed">
              {when}
            </Text>
          </Link>
        );
      })}
    </SimpleGrid>
  );
}
