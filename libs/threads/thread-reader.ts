import type { Pool } from 'pg';
import type { CreateThread, PermissionDecision } from '#domain';
import { BY_KEY, namedStatement, rethrowUnavailable, type NamedStatement } from '#platform';
import { withColumns, type RunSummary } from '#projections';

const FIND_REFERENCE = namedStatement(import.meta.dirname, 'find-reference.sql');
const FIND_DECISION = namedStatement(import.meta.dirname, 'find-decision.sql');
const FIND_RUNS = withColumns(namedStatement(import.meta.dirname, 'find-runs.sql'));
const FIRST_MESSAGE = namedStatement(import.meta.dirname, 'first-message.sql');

/** The queries of the use cases. Throws DatabaseUnavailable. */
export class ThreadReader {
  constructor(private readonly pool: Pool) {}

  /** Returns the Runs that belong to the Thread, by id. */
  async findRuns(threadId: string, runIds: readonly string[]): Promise<ReadonlyMap<string, RunSummary>> {
    if (runIds.length === 0) return new Map();
    const rows = await this.read<RunSummary>(FIND_RUNS, [threadId, runIds]);
    return new Map(rows.map((run) => [run.run_id, run]));
  }

  /** Returns the part of the first message from which a title is derived; null if there is no message. */
  async findFirstMessage(threadId: string): Promise<string | null> {
    const [row] = await this.read<{ text: string }>(FIRST_MESSAGE, [threadId]);
    return row?.text ?? null;
  }

  /** Returns the id of the Thread that has the reference of the new one; null if none has it. */
  async findReferenced({ externalRef, agentId, userId }: CreateThread): Promise<string | null> {
    const values = [externalRef?.tokenId, agentId, userId, externalRef?.value];
    const [row] = await this.read<{ threadId: string }>(FIND_REFERENCE, values);
    return row?.threadId ?? null;
  }

  /** Returns the decision on a confirmation request; null if it has none. */
  async findDecision(threadId: string, requestId: string): Promise<PermissionDecision | null> {
    const [row] = await this.read<{ decision: PermissionDecision }>(FIND_DECISION, [threadId, requestId]);
    return row?.decision ?? null;
  }

  private async read<Row extends object>(statement: NamedStatement, values: unknown[]): Promise<Row[]> {
    const { rows } = await this.pool.query<Row>({ ...statement, ...BY_KEY, values }).catch(rethrowUnavailable);
    return rows;
  }
}
