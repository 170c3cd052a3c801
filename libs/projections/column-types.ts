import { toRfc3339 } from '#platform';

/** How to read the value of a column from PostgreSQL's text, by the type of the column. */
export const READERS = {
  text: (value: string) => value,
  boolean: (value: string) => value === 't',
  // `infinity` stays as it is: no stream says that.
  time: (value: string) => (value.endsWith('+00') ? toRfc3339(value) : value),
  json: (value: string): unknown => JSON.parse(value),
};

export type ColumnType = keyof typeof READERS;
