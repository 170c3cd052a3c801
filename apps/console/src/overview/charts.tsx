import '@mantine/charts/styles.css';
import type { ReactNode } from 'react';
import { Paper, SimpleGrid, Text, Title } from '@mantine/core';
import { AreaChart, BarChart, LineChart } from '@mantine/charts';
import type { Overview } from '#contract';
import { counted, formatCount, formatDuration } from '../components/format.ts';
import { OUTCOMES, RUN_STATUS } from '../components/status-table.ts';
import { pointsOf, totalsOf } from './series.ts';

/** Each tick has its number, for which the uppermost one needs room. */
const Y_AXIS = { width: 52, interval: 0 as const };
const ROOM = { margin: { top: 8 } };

/** Of all charts. The picture has its name and sum in words; what exactly it draws is in the table below them. */
const COMMON = {
  h: 140,
  dataKey: 'label',
  withLegend: true,
  legendProps: { verticalAlign: 'bottom' as const, itemSorter: null },
  accessibilityLayer: false,
  xAxisProps: { minTickGap: 32 },
  yAxisProps: { ...Y_AXIS, allowDecimals: false },
  tickLine: 'none' as const,
};
const CURVE = { ...COMMON, curveType: 'monotone' as const, withDots: false, strokeWidth: 2 };
const BARS = { ...COMMON, barChartProps: ROOM };
const AREA = { ...CURVE, areaChartProps: ROOM };
const LINE = { ...CURVE, lineChartProps: ROOM };

const shade = (color: string) => `${color}.6`;

/** How the window went. */
export default function Charts({ overview }: { overview: Overview }) {
  const data = pointsOf(overview);
  const totals = totalsOf(overview.series);
  const { p50Ms, p95Ms } = overview.startLatency;
  const inMs = (ms: number | null) => (ms === null ? 'unknown' : formatDuration(ms));
  return (
    <SimpleGrid cols={{ base: 1, sm: 2, xl: 4 }} spacing="sm">
      <Chart
        title="Runs ended, by outcome"
        says={OUTCOMES.map((outcome) => `${formatCount(totals[outcome])} ${outcome}`).join(', ')}
      >
        <BarChart
          {...BARS}
          data={data}
          type="stacked"
          series={OUTCOMES.map((name) => ({
            name,
            label: RUN_STATUS[name].label,
            color: shade(RUN_STATUS[name].color),
          }))}
        />
      </Chart>
      <Chart title="Live Runs" says={`max ${formatCount(totals.mostLive)}`}>
        <AreaChart
          {...AREA}
          data={data}
          series={[{ name: 'live', label: 'Live', color: shade(RUN_STATUS.running.color) }]}
        />
      </Chart>
      <Chart title="Start latency" says={`p50 ${inMs(p50Ms)} · p95 ${inMs(p95Ms)}`}>
        <LineChart
          {...LINE}
          data={data}
          connectNulls={false}
          withDots
          dotProps={{ r: 2 }}
          valueFormatter={formatDuration}
          series={[
            { name: 'startP50Ms', label: 'p50', color: 'cyan.6' },
            { name: 'startP95Ms', label: 'p95', color: 'orange.6' },
          ]}
        />
      </Chart>
      <Chart
        title="Throughput, Runs per minute"
        says={`${counted(totals.created, 'Run')} created, ${totals.ended} ended`}
      >
        <LineChart
          {...LINE}
          data={data}
          yAxisProps={Y_AXIS}
          series={[
            { name: 'createdAMinute', label: 'Created', color: 'gray.6' },
            { name: 'endedAMinute', label: 'Ended', color: shade(RUN_STATUS.completed.color) },
          ]}
        />
      </Chart>
    </SimpleGrid>
  );
}

function Chart({ title, says, children }: { title: string; says: string; children: ReactNode }) {
  return (
    <Paper withBorder p="sm">
      <Title order={2} size="h3">
        {title}
      </Title>
      <Text size="xs" c="dimmed" mb="xs">
        {says}
      </Text>
      <div role="img" aria-label={`Chart: ${title}: ${says}`}>
        {children}
      </div>
    </Paper>
  );
}
