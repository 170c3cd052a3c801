import { Children, cloneElement, createContext, isValidElement, use, type ReactElement, type ReactNode } from 'react';
import { Table, type TableProps, type TableThProps, type TableTrProps } from '@mantine/core';
import classes from './record-table.module.css';

/** The name of a column, with its width and alignment if they are not the default. */
export type Column = string | (Pick<TableThProps, 'w' | 'ta'> & { name: string });

interface Props extends TableProps {
  'aria-label': string;
  columns: readonly Column[];
  /** The minimum width in px. In less space, the table scrolls sideways. On a phone, each row is a card. */
  minWidth: number;
  /** The maximum height in px. A higher table scrolls. */
  maxHeight?: number;
  /** Elements of RecordRow. */
  children: ReactNode;
}

/** The text of a cell without a value. On a phone, cards omit such cells. */
const NONE = '–';

const LabelsContext = createContext<readonly string[]>([]);

/** Shows records below the names of their columns. */
export function RecordTable({ columns, minWidth, maxHeight, children, className, ...table }: Props) {
  const named = columns.map((column) => (typeof column === 'string' ? { name: column } : column));
  return (
    <Table.ScrollContainer
      className={classes.scroll}
      minWidth={minWidth}
      {...(maxHeight === undefined ? {} : { maxHeight })}
    >
      {/* Explicit roles, because the style of rows on a phone (`display: block`) would remove them. */}
      <Table role="table" {...table} className={[classes.table, className].filter(Boolean).join(' ')}>
        <Table.Thead role="rowgroup">
          <Table.Tr role="row">
            {named.map(({ name, ...look }) => (
              <Table.Th key={name} role="columnheader" {...look}>
                {name}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <LabelsContext value={named.map(({ name }) => name)}>
          <Table.Tbody role="rowgroup">{children}</Table.Tbody>
        </LabelsContext>
      </Table>
    </Table.ScrollContainer>
  );
}

interface RowProps extends TableTrProps {
  /** True if the record has left the list. */
  isGone?: boolean;
}

/** A row of a RecordTable, with one Table.Td for each column. On a phone, each cell has the name of its column. */
export function RecordRow({ children, isGone = false, ...row }: RowProps) {
  const labels = use(LabelsContext);
  return (
    <Table.Tr role="row" {...row} {...(isGone ? { 'data-gone': true } : {})}>
      {Children.toArray(children)
        .filter((cell): cell is ReactElement<Record<string, unknown>> => isValidElement(cell))
        .map((cell, i) =>
          cloneElement(cell, {
            ...{ role: 'cell', 'data-label': labels[i] },
            ...(cell.props['children'] === NONE ? { 'data-none': true } : {}),
          }),
        )}
    </Table.Tr>
  );
}
