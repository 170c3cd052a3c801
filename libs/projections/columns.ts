import { toRfc3339, type NamedStatement } from '#platform';
import { READERS, type ColumnType } from './column-types.ts';
import { RUN_COLUMNS, type RunSummary } from './run-summary.ts';
import { THREAD_COLUMNS, type ThreadSummary } from './thread-summary.ts';

/** The columns of a table by name, in the order in which statements list them. The primary key is the first. */
type Columns = Record<string, ColumnType>;

const TABLES: Record<string, Columns> = { thread: THREAD_COLUMNS, run: RUN_COLUMNS };

/**
 * Replaces the names of lists of columns in a statement. `:thread_columns` and `:run_columns` become the columns of the
 * summaries, `:t.thread_columns` those of the table `t`. `:thread_updates` and `:run_updates` become the assignments of an
 * upsert, of all columns but the key.
 */
export function withColumns({ name, text }: NamedStatement): NamedStatement {
  const lists = /:(\w+\.|)(thread|run)_(columns|updates)\b/g;
  const list = (_: string, prefix: string, table: string, kind: string): string => {
    const columns = Object.keys(TABLES[table]!);
    if (kind === 'columns') return columns.map((column) => prefix + column).join(', ');
    const [, ...others] = columns;
    return others.map((column) => `${column} = excluded.${column}`).join(', ');
  };
  return { name, text: text.replace(lists, list) };
}

/** Returns the summary of a Thread from the texts of `:thread_columns`. */
export const readThreadSummary = (texts: Texts): ThreadSummary => readRow<ThreadSummary>(THREAD_COLUMNS, texts);

/** Returns the summary of a Run from the texts of `:run_columns`. */
export const readRunSummary = (texts: Texts): RunSummary => readRow<RunSummary>(RUN_COLUMNS, texts);

type Texts = readonly (string | null)[];

function readRow<Row>(columns: Columns, texts: Texts): Row {
  const row: Record<string, unknown> = {};
  let i = 0;
  for (const name in columns) {
    const text = texts[i++] ?? null;
    row[name] = text === null ? null : READERS[columns[name]!](text);
  }
  return row as Row;
}

/** Returns a summary that PostgreSQL wrote as JSON, with times as RFC 3339. JSON has them with an offset and without trailing zeros. */
export function withRfc3339<Row extends ThreadSummary | RunSummary>(row: Row): Row {
  const columns: Columns = 'run_id' in row ? RUN_COLUMNS : THREAD_COLUMNS;
  const values = Object.entries(row).map(([name, value]: [string, unknown]) =>
    columns[name] === 'time' && typeof value === 'string' ? [name, toRfc3339(value)] : [name, value],
  );
  return Object.fromEntries(values) as Row;
}
