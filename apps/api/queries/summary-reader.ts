import type { Pool } from 'pg';
import { namedStatement, toRfc3339 } from '#platform';
import type { RunSummary, ThreadSummary } from '#projections';

const FIND_THREAD = namedStatement(import.meta.dirname, 'find-thread.sql');
const FIND_RUNS = namedStatement(import.meta.dirname, 'find-runs.sql');
const LIST_RUNS = namedStatement(import.meta.dirname, 'list-runs.sql');

/** By key, each of them: one that takes so long is on a connection that nobody answers any more. Milliseconds. */
const LIMIT = { query_timeout: 5_000 };

/** A Thread and its most recent Run. */
export interface ThreadAndRun {
  thread: ThreadSummary;
  run: RunSummary | null;
  /** How many events its stream has. */
  version: number;
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
