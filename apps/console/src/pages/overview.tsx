import { useDeferredValue } from 'react';
import { Group, SegmentedControl, Text } from '@mantine/core';
import type { Overview } from '#contract';
import { useOperation } from '../api/use-operation.ts';
import { lazy } from '../lazy.tsx';
import { Counts } from '../overview/counts.tsx';
import { Installation } from '../overview/installation.tsx';
import { ProblemBar } from '../overview/problem-bar.tsx';
import { Problems } from '../overview/problems.tsx';
import { SeriesTable } from '../overview/series-table.tsx';
import { windowOf, WINDOWS } from '../components/windows.ts';
import { Ago } from '../components/ago.tsx';
import { PageTitle } from '../components/page-title.tsx';
import { Loading, QueryState } from '../components/query-state.tsx';
import { useUrlFilter } from '../components/url-filter.ts';

/** Drawing is the heaviest part: what is wrong is told before it is loaded. */
const Charts = lazy(() => import('../overview/charts.tsx'));

/** What the person on call looks at first. */
export default function OverviewPage() {
  const [filter, change] = useUrlFilter(['window'] as const);
  const windowMinutes = windowOf(filter.window);
  const query = useOperation('/overview', { query: { windowMinutes } }, { refetchInterval: 5_000 });
  return (
    <>
      <PageTitle title="Overview">
        <Group gap="xs">
          <Text size="xs" c="dimmed" visibleFrom="sm">
            Updated <Ago time={query.data?.overview.at} />
          </Text>
          <SegmentedControl
            size="xs"
            aria-label="Window"
            value={String(windowMinutes)}
            onChange={(window) => change({ window })}
            data={WINDOWS}
          />
        </Group>
      </PageTitle>
      <QueryState query={query}>
        {({ overview }) => (
          <>
            <ProblemBar overview={overview} isNow={query.error === null && query.failureCount === 0} />
            <Counts overview={overview} />
            <LateCharts overview={overview} />
            <Problems overview={overview} />
            <SeriesTable overview={overview} />
            <Installation overview={overview} />
          </>
        )}
      </QueryState>
    </>
  );
}

/** Drawn when all else stands on the page: also where they are loaded already they take longer than the rest. */
function LateCharts({ overview }: { overview: Overview }) {
  const drawn = useDeferredValue<Overview | null>(overview, null);
  return drawn === null ? <Loading /> : <Charts overview={drawn} />;
}
