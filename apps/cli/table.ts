import Table from 'cli-table3';
import { showInLine } from './text.ts';

type Value = string | number | boolean | null | undefined | readonly string[];

export interface Column<Row> {
  head: string;
  value: (row: Row) => Value;
  /** The text may be cut if the line is too long. Ids and times are never cut. */
  cut?: boolean;
  /** The column is left out if the line is too long; of several, the last one first. */
  wide?: boolean;
}

/** The width to which a column is cut at most, with room for a word. */
const NARROWEST = 12;
const GAP = 2;
const NO_LINES = [
  ...['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right'],
  ...['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'],
];
const chars = Object.fromEntries(NO_LINES.map((name) => [name, '']));

/**
 * Returns the table, one line a row, and the heads of the columns that are left out. `width` is that of the terminal; with
 * Infinity nothing is cut or left out.
 */
export function renderTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width = Infinity,
): { text: string; leftOut: readonly string[] } {
  const cells = rows.map((row) => columns.map(({ value }) => showValue(value(row))));
  const render = (colWidths: (number | null)[]) => {
    const style = { head: [], border: [], 'padding-left': 0, 'padding-right': GAP };
    const table = new Table({ head: columns.map(({ head }) => head.toUpperCase()), chars, style, colWidths });
    table.push(...cells);
    const text = table.toString();
    return { text, widths: table.options.colWidths.map(Number) };
  };
  const whole = render([]);
  const widths = fit(columns, whole.widths, width);
  const last = columns.findLastIndex(({ wide }) => wide);
  if (total(widths) > width && last !== -1) {
    const fitted = renderTable(columns.toSpliced(last, 1), rows, width);
    return { ...fitted, leftOut: [columns[last]!.head, ...fitted.leftOut] };
  }
  const { text } = widths === whole.widths ? whole : render(widths);
  return { text: text.replace(/ +$/gm, ''), leftOut: [] };
}

const total = (widths: readonly number[]): number => widths.reduce((sum, each) => sum + each, 0) - GAP;

/** Narrows the widest column that may be cut, until all columns fit or none can be narrowed further. */
function fit(columns: readonly Column<never>[], natural: number[], width: number): number[] {
  if (total(natural) <= width) return natural;
  const widths = [...natural];
  while (total(widths) > width) {
    const widest = columns.reduce<number>((best, { cut }, i) => {
      const gives = cut === true && widths[i]! > NARROWEST + GAP;
      return gives && (best === -1 || widths[i]! > widths[best]!) ? i : best;
    }, -1);
    if (widest === -1) break;
    widths[widest]!--;
  }
  return widths;
}

/** Returns one record, one line a field. */
export function renderFields(fields: readonly (readonly [name: string, value: Value])[]): string {
  const width = Math.max(...fields.map(([name]) => name.length)) + GAP;
  return fields.map(([name, value]) => `${name.padEnd(width)}${showValue(value)}`).join('\n');
}

function showValue(value: Value): string {
  if (value === null || value === undefined || value === '') return '-';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'object') return value.length === 0 ? '-' : value.map(showInLine).join(' ');
  return showInLine(String(value));
}
