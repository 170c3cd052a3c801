import { useLayoutEffect, useRef, useState, type ComponentProps, type FocusEvent, type ReactNode } from 'react';
import { Box, Button, Group, Text } from '@mantine/core';
import { counted } from './format.ts';
import { RecordTable } from './record-table.tsx';
import { steadyRows, type Identified } from './steady-rows.ts';

interface Props<Row> extends Omit<ComponentProps<typeof RecordTable>, 'children'> {
  rows: readonly Row[];
  /** Whether the list has another page. */
  hasMore: boolean;
  /** The singular of what a row is. */
  noun: string;
  /** Returns an element of RecordRow with a key. `isGone`: the row has left the list, and is shown until nobody works with it. */
  children: (row: Row, isGone: boolean) => ReactNode;
}

/**
 * Shows records that are read again and again, newest first. While the pointer or the focus is on the rows, none of them moves;
 * a button shows the new ones.
 */
export function RecordList<Row extends Identified>({ rows, hasMore, noun, children, ...table }: Props<Row>) {
  const box = useRef<HTMLDivElement>(null);
  const [held, setHeld] = useState(rows);
  // Asked when rows arrive, because an element that is removed tells nobody that it has lost the focus.
  useLayoutEffect(() => {
    if (!box.current?.matches(':hover, :focus-within')) setHeld(rows);
  }, [rows]);
  const release = () => setHeld(rows);
  const onBlur = ({ currentTarget, relatedTarget }: FocusEvent) => !currentTarget.contains(relatedTarget) && release();
  const { shown, gone, fresh } = steadyRows(held, rows, hasMore);
  return (
    <>
      {/* Its height stays, so that the button moves no row. */}
      <Group h={28} gap="sm">
        <Text size="xs" c="dimmed">
          {counted(shown.length, noun)} shown
        </Text>
        {fresh > 0 && (
          <Button variant="default" size="compact-xs" onClick={release}>
            Show {counted(fresh, `new ${noun}`)}
          </Button>
        )}
      </Group>
      <Box ref={box} onPointerLeave={release} onBlur={onBlur}>
        <RecordTable {...table}>{shown.map((row) => children(row, gone.has(row.id)))}</RecordTable>
      </Box>
    </>
  );
}
