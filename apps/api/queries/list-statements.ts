import type { Ownership } from '#access';
import { namedStatement, type NamedStatement } from '#platform';
import { withColumns } from '#projections';

export type OwnerColumn = keyof Ownership;

/** The filters of Thread lists that have a separate index, with the SQL expression that each one compares. */
const FILTERED = { userId: 'user_id', externalRef: 'coalesce(external_ref, client_external_ref)' } as const;
export type FilterName = keyof typeof FILTERED;

const RUN_STATUS = 'select r.status from run_summaries r where r.run_id = last_run_id';

interface ListWanted {
  filters: Record<FilterName, string | undefined>;
  runStatuses: readonly string[] | undefined;
  maxRunBytes: number | null;
  /** Whether to look up the Threads of live and failed Runs instead of the Threads in order. */
  startsAtRuns: boolean;
}

/** Returns the statement for one kind of owner. A cached plan for all kinds would use no index. */
export function ofOwner(fileName: string, owner: OwnerColumn): NamedStatement {
  const { name, text } = readList(fileName);
  // Short, because PostgreSQL keeps only 63 characters of a statement's name.
  return { name: `${name} ${owner.split('_')[1]}`, text: text.replaceAll(':owner', owner) };
}

function readList(fileName: string): NamedStatement {
  const { name, text } = withColumns(namedStatement(import.meta.dirname, fileName));
  return { name, text: text.replace(/^ *--.*\n/gm, '') };
}

const statementsOf = (owner: OwnerColumn) => ({
  inOrder: ofOwner('list-threads.sql', owner),
  startsAtRuns: ofOwner('list-threads-by-run.sql', owner),
});
const LISTS = {
  owner_person_id: statementsOf('owner_person_id'),
  owner_service_token_id: statementsOf('owner_service_token_id'),
};
const WITH_RUNS = readList('list-threads-with-runs.sql');

/** The number of parameters that all lists share. */
const SHARED = 7;

/**
 * Returns the statement for a combination of filters, and its values after the shared ones. Each combination has a separate
 * statement, because a cached plan for all of them would use no index.
 */
export function listStatement(
  owner: OwnerColumn,
  { filters, runStatuses, maxRunBytes, startsAtRuns }: ListWanted,
): { statement: NamedStatement; sought: unknown[] } {
  const sought: unknown[] = [];
  const parameter = (value: unknown): string => `$${SHARED + sought.push(value)}`;
  const conditions: string[] = [];
  let { name, text } = LISTS[owner][startsAtRuns ? 'startsAtRuns' : 'inOrder'];
  for (const filter of Object.keys(FILTERED) as FilterName[]) {
    if (filters[filter] === undefined) continue;
    name += ` ${filter}`;
    conditions.push(`and ${FILTERED[filter]} = ${parameter(filters[filter])}`);
  }
  if (runStatuses !== undefined) {
    const statuses = `${parameter(runStatuses)}::text[]`;
    name += ' runStatus';
    conditions.push(`and (${RUN_STATUS}) = any (${statuses})`);
    text = text.replaceAll(':run_statuses', () => statuses);
  }
  text = text.replaceAll(':filters', () => conditions.join(' '));
  if (maxRunBytes !== null) {
    name += ' withRun';
    const page = text;
    const maxBytes = `${parameter(maxRunBytes)}::bigint`;
    text = WITH_RUNS.text.replace(':page', () => page).replaceAll(':max_bytes', () => maxBytes);
  }
  return { statement: { name, text }, sought };
}
