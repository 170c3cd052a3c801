import type { Pool } from 'pg';
import type { Ownership } from '#access';
import type { ThreadPlace } from '#contract';
import { BY_KEY, namedStatement, type NamedStatement } from '#platform';
import { withColumns, withRfc3339, type RunSummary, type ThreadSummary } from '#projections';

const FIND_THREAD = namedStatement(import.meta.dirname, 'find-thread.sql');
const LIST_RUNS = withColumns(namedStatement(import.meta.dirname, 'list-runs.sql'));

/** The filters of Thread lists that have a separate index, with their conditions. */
const FILTERED = { userId: 'user_id', externalRef: 'coalesce(external_ref, client_external_ref)' } as const;
type FilterName = keyof typeof FILTERED;
type OwnerColumn = keyof Ownership;

/** Returns the statement for one kind of owner. A cached plan for all kinds would use no index. */
function ofOwner(fileName: string, owner: OwnerColumn): NamedStatement {
  const { name, text } = withColumns(namedStatement(import.meta.dirname, fileName));
  return { name: `${name} ${owner}`, text: text.replace(/^--.*\n/gm, '').replaceAll(':owner', owner) };
}

/** Returns a statement for each combination of filters, by `filterKey`, for the same reason. */
function listsOf(owner: OwnerColumn): ReadonlyMap<string, NamedStatement> {
  const { name, text } = ofOwner('list-threads.sql', owner);
  const choices: FilterName[][] = [[], ['userId'], ['externalRef'], ['userId', 'externalRef']];
  return new Map(
    choices.map((filters) => {
      const conditions = filters.map((filter, i) => `and ${FILTERED[filter]} = $${i + 8}`);
      const statement = { name: [name, ...filters].join(' '), text: text.replace(':filters', conditions.join(' ')) };
      return [filterKey(filters), statement];
    }),
  );
}

const filterKey = (filters: readonly FilterName[]): string => filters.join(' ');

const LIST_THREADS = {
  owner_person_id: listsOf('owner_person_id'),
  owner_service_token_id: listsOf('owner_service_token_id'),
};
const OWNED_AGENTS = {
  owner_person_id: ofOwner('owned-agents.sql', 'owner_person_id'),
  owner_service_token_id: ofOwner('owned-agents.sql', 'owner_service_token_id'),
};

/** A Thread and its most recent Run. */
export interface ThreadAndRun {
  thread: ThreadSummary;
  /** Null if there is no Run, or if it was not requested. */
  run: RunSummary | null;
  /** The number of events in the stream. */
  version: number;
  /** The last entry of the public log; '' if the log is empty. */
  lastEntryId: string;
}

export interface ThreadsWanted {
  owner: Ownership;
  agentIds: readonly string[];
  status: ThreadSummary['status'] | null;
  archived: boolean | null;
  filters: Record<FilterName, string | undefined>;
  after: ThreadPlace | null;
  limit: number;
}

/** Reads the summaries of Threads and Runs without checking access. Throws what the database throws. */
export class SummaryReader {
  constructor(private readonly pool: Pool) {}

  /** Reads the Run only on request, because its final output may be large. */
  async findThread(threadId: string, { withRun = false } = {}): Promise<ThreadAndRun | null> {
    const { rows } = await this.pool.query<ThreadAndRun>({ ...FIND_THREAD, ...BY_KEY, values: [threadId, withRun] });
    const [row] = rows;
    if (row === undefined) return null;
    return { ...row, thread: withRfc3339(row.thread), run: row.run && withRfc3339(row.run) };
  }

  /** Returns the ids of the Agents of which the owner has Threads. */
  async listOwnedAgents(owner: Ownership): Promise<string[]> {
    const column = ownerColumn(owner);
    const statement = OWNED_AGENTS[column];
    const { rows } = await this.pool.query<{ id: string }>({ ...statement, ...BY_KEY, values: [owner[column]] });
    return rows.map(({ id }) => id);
  }

  /** Returns the Threads of one owner and these Agents, last changed first. */
  async listThreads(wanted: ThreadsWanted): Promise<ThreadSummary[]> {
    const { owner, agentIds, status, archived, filters, after, limit } = wanted;
    if (agentIds.length === 0) return [];
    const column = ownerColumn(owner);
    const given = (Object.keys(FILTERED) as FilterName[]).filter((name) => filters[name] !== undefined);
    const statement = LIST_THREADS[column].get(filterKey(given))!;
    const place = [after?.updatedAt ?? null, after?.threadId ?? null];
    const sought = given.map((name) => filters[name]);
    const values = [owner[column], agentIds, status, archived, ...place, limit, ...sought];
    const { rows } = await this.pool.query<ThreadSummary>({ ...statement, ...BY_KEY, values });
    return rows;
  }

  /** Returns the Runs after `cursor`, newest first, and whether a bound cut the page short. */
  async listRuns(
    threadId: string,
    cursor: string | null,
    { limit, maxBytes }: { limit: number; maxBytes: number },
  ): Promise<{ runs: RunSummary[]; isCut: boolean }> {
    const values = [threadId, cursor, limit, maxBytes];
    const { rows } = await this.pool.query<RunSummary & { found: number }>({ ...LIST_RUNS, ...BY_KEY, values });
    return { runs: rows, isCut: rows.length < (rows[0]?.found ?? 0) };
  }
}

function ownerColumn(owner: Ownership): OwnerColumn {
  return owner.owner_person_id === null ? 'owner_service_token_id' : 'owner_person_id';
}
