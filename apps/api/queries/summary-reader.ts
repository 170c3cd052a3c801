import type { Pool } from 'pg';
import type { Ownership } from '#access';
import type { ThreadPlace } from '#contract';
import { namedStatement, toRfc3339, type NamedStatement } from '#platform';
import type { RunSummary, ThreadSummary } from '#projections';

const FIND_THREAD = namedStatement(import.meta.dirname, 'find-thread.sql');
const FIND_RUNS = namedStatement(import.meta.dirname, 'find-runs.sql');
const LIST_RUNS = namedStatement(import.meta.dirname, 'list-runs.sql');

/** By each kind of owner, and with or without the application's user: four plans, each by an index of its own. */
const LIST_THREADS = {
  owner_person_id: listThreads('owner_person_id'),
  owner_service_token_id: listThreads('owner_service_token_id'),
};

function listThreads(owner: keyof Ownership): { all: NamedStatement; ofUser: NamedStatement } {
  const { name, text } = namedStatement(import.meta.dirname, 'list-threads.sql');
  const ofOwner = text.replace(/^--.*\n/gm, '').replace(':owner', owner);
  return {
    all: { name: `${name} ${owner}`, text: ofOwner.replace(':user', '') },
    ofUser: { name: `${name} ${owner} user`, text: ofOwner.replace(':user', 'and user_id = $8') },
  };
}

/** By key, each of them: one that takes so long is on a connection that nobody answers any more. Milliseconds. */
const LIMIT = { query_timeout: 5_000 };

/** A Thread and its most recent Run. */
export interface ThreadAndRun {
  thread: ThreadSummary;
  run: RunSummary | null;
  /** How many events its stream has. */
  version: number;
  /** Of its public log; '' while that is empty. */
  lastEntryId: string;
}

export interface ThreadsWanted {
  owner: Ownership;
  agentId: string;
  status: ThreadSummary['status'] | null;
  archived: boolean | null;
  userId: string | null;
  after: ThreadPlace | null;
  limit: number;
}

/** Reads the summaries of Threads and Runs, whoever may see them. Throws what the database throws. */
export class SummaryReader {
  constructor(private readonly pool: Pool) {}

  async findThread(threadId: string): Promise<ThreadAndRun | null> {
    const { rows } = await this.pool.query<ThreadAndRun>({ ...FIND_THREAD, ...LIMIT, values: [threadId] });
    const [row] = rows;
    if (row === undefined) return null;
    return { ...row, thread: withRfc3339(row.thread), run: row.run && withRfc3339(row.run) };
  }

  /** Those of one owner and agent, the last changed first. */
  async listThreads(wanted: ThreadsWanted): Promise<ThreadSummary[]> {
    const { owner, agentId, status, archived, userId, after, limit } = wanted;
    const column = owner.owner_person_id === null ? 'owner_service_token_id' : 'owner_person_id';
    const statement = LIST_THREADS[column][userId === null ? 'all' : 'ofUser'];
    const place = [after?.updatedAt ?? null, after?.threadId ?? null];
    const values = [owner[column], agentId, status, archived, ...place, limit, ...(userId === null ? [] : [userId])];
    const { rows } = await this.pool.query<ThreadSummary>({ ...statement, ...LIMIT, values });
    return rows;
  }

  /** The Runs of the Thread among these, by id. */
  async findRuns(threadId: string, runIds: readonly string[]): Promise<ReadonlyMap<string, RunSummary>> {
    if (runIds.length === 0) return new Map();
    const { rows } = await this.pool.query<RunSummary>({ ...FIND_RUNS, ...LIMIT, values: [threadId, runIds] });
    return new Map(rows.map((run) => [run.run_id, run]));
  }

  /** At most `limit` Runs, newest first, after the one that `cursor` names. */
  async listRuns(threadId: string, cursor: string | null, limit: number): Promise<RunSummary[]> {
    const { rows } = await this.pool.query<RunSummary>({ ...LIST_RUNS, ...LIMIT, values: [threadId, cursor, limit] });
    return rows;
  }
}

/** `to_jsonb` writes times with an offset and without trailing zeros. */
function withRfc3339<Row extends ThreadSummary | RunSummary>(row: Row): Row {
  const time = (value: string | null | undefined) => value && toRfc3339(value);
  const times = { created_at: time(row.created_at), updated_at: time(row.updated_at) };
  if (!('started_at' in row)) return { ...row, ...times };
  return { ...row, ...times, started_at: time(row.started_at), completed_at: time(row.completed_at) };
}
