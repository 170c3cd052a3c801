interface Identified {
  /** A ULID: newer records have larger ids. */
  id: string;
}

/**
 * Returns the rows to show while a person works with those of `held`: no row moves. Held rows are updated, and stay if they
 * left the list: `gone` has their ids. Older rows follow them, such as those of the next page. `fresh` counts the rows that are not
 * shown yet. `hasMore`: whether the list has another page.
 */
export function steadyRows<Row extends Identified>(
  held: readonly Row[],
  rows: readonly Row[],
  hasMore = false,
): { shown: readonly Row[]; gone: ReadonlySet<string>; fresh: number } {
  const known = new Set(held.map(({ id }) => id));
  const current = new Map(rows.map((row) => [row.id, row]));
  const oldest = held.at(-1)?.id ?? '';
  const others = rows.filter(({ id }) => !known.has(id));
  const older = others.filter(({ id }) => id < oldest);
  // A row below the list is on its next page now.
  const end = hasMore ? (rows.at(-1)?.id ?? '') : '';
  const gone = new Set([...known].filter((id) => !current.has(id) && id > end));
  const shown = [...held.map((row) => current.get(row.id) ?? row), ...older];
  return { shown, gone, fresh: others.length - older.length };
}
