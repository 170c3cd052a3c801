import type { Pool } from 'pg';
import type { Ownership } from '#access';
import type { ThreadPlace } from '#contract';
import { BY_KEY, namedStatement } from '#platform';
import { withColumns, withRfc3339, type RunSummary, type ThreadSummary } from '#projections';
import { listStatement, ofOwner, type FilterName, type OwnerColumn } from './list-statements.ts';

const LIST_RUNS = withColumns(namedStatement(import.meta.dirname, 'list-runs.sql'));
const HAS_FEW_RUNS = namedStatement(import.meta.dirname, 'has-few-runs.sql');
/**
 * The most live and failed Runs from which a page of Threads is read. If there are more, the Threads are read in order. Failed Runs
 * of the whole installation count, because no index has their Agents.
 */
const FEW_RUNS = 10_000;
/** The statuses without an index that finds their Runs. */
const UNINDEXED: readonly RunStatus[] = ['completed', 'cancelled', 'expired'];

const OWNED_AGENTS = {
  owner_person_id: ofOwner('owned-agents.sql', 'owner_person_id'),
  owner_service_token_id: ofOwner('owned-agents.sql', 'owner_service_token_id'),
};

type RunStatus = RunSummary['status'];

export interface ThreadsWanted {
  owner: Ownership;
  agentIds: readonly string[];
  status: ThreadSummary['status'] | null;
  archived: boolean | null;
  filters: Record<FilterName, string | undefined>;
  /** The statuses of the newest Run. Undefined: any, or no Run. */
  runStatuses: readonly RunStatus[] | undefined;
  after: ThreadPlace | null;
  limit: number;
  /** With a number, reads the newest Runs too, and ends the page once their final outputs exceed this size. */
  maxRunBytes: number | null;
}

/** A Thread of a list. `run` is undefined if Runs were not requested, and null if there is none. */
export interface ListedThread {
  thread: ThreadSummary;
  run?: RunSummary | null;
}

/** Reads the summaries of Threads and Runs without checking access. Throws what the database throws. */
export class SummaryReader {
  constructor(private readonly pool: Pool) {}

  /** Returns the ids of the Agents of which the owner has Threads. */
  async listOwnedAgents(owner: Ownership): Promise<string[]> {
    const column = ownerColumn(owner);
    const statement = OWNED_AGENTS[column];
    const { rows } = await this.pool.query<{ id: string }>({ ...statement, ...BY_KEY, values: [owner[column]] });
    return rows.map(({ id }) => id);
  }

  /** Returns the Threads of one owner and these Agents, last changed first, and whether a bound cut the page short. */
  async listThreads(wanted: ThreadsWanted): Promise<{ threads: ListedThread[]; isCut: boolean }> {
    const { owner, agentIds, status, archived, filters, runStatuses, after, limit, maxRunBytes } = wanted;
    if (agentIds.length === 0) return { threads: [], isCut: false };
    const column = ownerColumn(owner);
    const place = [after?.updatedAt ?? null, after?.threadId ?? null];
    // One more than requested shows whether there is another page.
    const values = [owner[column], agentIds, status, archived, ...place, limit + 1];
    const startsAtRuns = await this.startsAtRuns(wanted);
    const { statement, sought } = listStatement(column, { filters, runStatuses, maxRunBytes, startsAtRuns });
    const query = { ...statement, ...BY_KEY, values: [...values, ...sought] };
    if (maxRunBytes === null) {
      const { rows } = await this.pool.query<ThreadSummary>(query);
      return { threads: rows.slice(0, limit).map((thread) => ({ thread })), isCut: rows.length > limit };
    }
    const { rows } = await this.pool.query<Required<ListedThread> & { found: number }>(query);
    const threads = rows.map(({ thread, run }) => ({ thread: withRfc3339(thread), run: run && withRfc3339(run) }));
    return { threads, isCut: rows.length < (rows[0]?.found ?? 0) };
  }

  /** Returns whether looking up the Threads of matching Runs reads less than looking up the Runs of Threads in order. */
  private async startsAtRuns({ agentIds, runStatuses, filters }: ThreadsWanted): Promise<boolean> {
    if (runStatuses === undefined || runStatuses.some((status) => UNINDEXED.includes(status))) return false;
    // A user or a reference has few Threads.
    if (Object.values(filters).some((value) => value !== undefined)) return false;
    const values = [agentIds, runStatuses, FEW_RUNS];
    const { rows } = await this.pool.query<{ few: boolean }>({ ...HAS_FEW_RUNS, ...BY_KEY, values });
    return rows[0]?.few === true;
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
