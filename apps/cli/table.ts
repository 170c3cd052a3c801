import Table from 'cli-table3';
import { showInLine } from './text.ts';

type Value = string | number | boolean | null | undefined | readonly string[];

export interface Column<Row> {
  head: string;
  value: (row: Row) => Value;
  /** Text that may be cut where the line is too long; ids and times never are. */
  cut?: boolean;
}

const NARROWEST = 8;
const GAP = 2;
const NO_LINES = [
  ...['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right'],
  ...['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'],
];
const chars = Object.fromEntries(NO_LINES.map((name) => [name, '']));

/** A line a row, in columns. `width`: that of the terminal; Infinity: nothing is cut. */
export function renderTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[], width = Infinity): string {
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
  const { text } = widths === whole.widths ? whole : render(widths);
  return text.replace(/ +$/gm, '');
}

/** Takes from the widest column that may be cut, until all fit or none has more to give. */
function fit(columns: readonly Column<never>[], natural: number[], width: number): number[] {
  const widths = [...natural];
  const total = (): number => widths.reduce((sum, each) => sum + each, 0) - GAP;
  if (total() <= width) return natural;
  while (total() > width) {
    const widest = columns.reduce<number>((best, { cut }, i) => {
      const gives = cut === true && widths[i]! > NARROWEST + GAP;
      return gives && (best === -1 || widths[i]! > widths[best]!) ? i : best;
    }, -1);
    if (widest === -1) break;
    widths[widest]!--;
  }
  return widths;
}

/** One record: a line a field. */
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
