import { Button, Paper, Table } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import type { Overview } from '#contract';
import { formatDuration, formatTime } from '../components/format.ts';
import { RecordRow, RecordTable } from '../components/record-table.tsx';

const COLUMNS = ['From', 'Created', 'Completed', 'Failed', 'Cancelled', 'Expired', 'Live', 'Start p50', 'Start p95'];
const inMs = (ms: number | null) => (ms === null ? '–' : formatDuration(ms));

/** What the charts draw, in numbers. */
export function SeriesTable({ overview: { series } }: { overview: Overview }) {
  const [opened, { toggle }] = useDisclosure();
  return (
    <>
      <Button variant="subtle" onClick={toggle} aria-expanded={opened} mt="xs">
        {opened ? 'Hide the numbers' : 'Show the numbers behind the charts'}
      </Button>
      {opened && (
        <Paper withBorder p="xs" mt="xs">
          <RecordTable
            aria-label="Numbers behind the charts"
            stickyHeader
            tabularNums
            minWidth={720}
            maxHeight={360}
            columns={COLUMNS}
          >
            {series.toReversed().map((bucket) => (
              <RecordRow key={bucket.at}>
                <Table.Td>{formatTime(bucket.at)}</Table.Td>
                <Table.Td>{bucket.created}</Table.Td>
                <Table.Td>{bucket.completed}</Table.Td>
                <Table.Td>{bucket.failed}</Table.Td>
                <Table.Td>{bucket.cancelled}</Table.Td>
                <Table.Td>{bucket.expired}</Table.Td>
                <Table.Td>{bucket.live}</Table.Td>
                <Table.Td>{inMs(bucket.startP50Ms)}</Table.Td>
                <Table.Td>{inMs(bucket.startP95Ms)}</Table.Td>
              </RecordRow>
            ))}
          </RecordTable>
        </Paper>
      )}
    </>
  );
}
