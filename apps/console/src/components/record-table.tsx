import type { ReactNode } from 'react';
import { Table, VisuallyHidden, type TableProps, type TableThProps } from '@mantine/core';

/** The name of a column, and how it is set where that is not as usual. `isHidden`: for who hears the page. */
export type Column = string | (Pick<TableThProps, 'w' | 'ta'> & { name: string; isHidden?: boolean });

interface Props extends TableProps {
  'aria-label': string;
  columns: readonly Column[];
  /** Narrower than this, px, it scrolls sideways, and not the page. */
  minWidth: number;
  /** Higher than this, px, it scrolls by itself. */
  maxHeight?: number;
  /** The rows. */
  children: ReactNode;
}

/** Records below the names of their columns. */
export function RecordTable({ columns, minWidth, maxHeight, children, ...table }: Props) {
  return (
    <Table.ScrollContainer minWidth={minWidth} {...(maxHeight === undefined ? {} : { maxHeight })}>
      <Table {...table}>
        <Table.Thead>
          <Table.Tr>
            {columns
              .map((column) => (typeof column === 'string' ? { name: column } : column))
              .map(({ name, isHidden = false, ...look }) => (
                <Table.Th key={name} {...look}>
                  {isHidden ? <VisuallyHidden>{name}</VisuallyHidden> : name}
                </Table.Th>
              ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>{children}</Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
