import type { OptionSpec } from '../command-spec.ts';

/** Options of every list. */
export const PAGING: readonly OptionSpec[] = [
  { flags: '--all', description: 'all pages, not only the first' },
  { flags: '--limit <count>', description: 'rows per page, at most 100' },
];
