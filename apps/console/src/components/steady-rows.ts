export interface Identified {
  /** A ULID: newer records have larger ids. */
  id: string;
  /** The place in the list, if it is not the id: newer records have larger ones. Several rows can have one place. */
  place?: string;
}

const placeOf = ({ id, place = id }: Identified): string => place;

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
  const oldest = held.length === 0 ? '' : placeOf(held.at(-1)!);
  const others = rows.filter(({ id }) => !known.has(id));
  const older = others.filter((row) => placeOf(row) < oldest);
  // A row below the list is on its next page now.
  const end = hasMore && rows.length > 0 ? placeOf(rows.at(-1)!) : '';
  const left = held.filter((row) => !current.has(row.id) && placeOf(row) > end);
  const gone = new Set(left.map(({ id }) => id));
  const shown = [...held.map((row) => current.get(row.id) ?? row), ...older];
  return { shown, gone, fresh: others.length - older.length };
}
