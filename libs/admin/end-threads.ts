import type { Pool } from 'pg';
import type { CommandHandler } from '#event-store';
import { namedStatement, rethrowUnavailable } from '#platform';

const THREADS_TO_END = namedStatement(import.meta.dirname, 'end-threads.sql');

const BATCH = 1_000;

/**
 * Seconds after which no process can create a Thread for a deleted agent. A process may have cached the agent for 5 s
 * (docs/spec/decisions.md#tokens), and then run the slowest statement.
 */
const SETTLED_AFTER_S = 60;

export interface Ended {
  /** The number of Threads ended. */
  ended: number;
  /** Whether no live Thread remains. */
  complete: boolean;
}

/** Ends Threads of a deleted agent, until the time `until` of `performance.now()`. Throws DatabaseUnavailable. */
export async function endThreadsOf(
  pool: Pool,
  handler: CommandHandler,
  agentId: string,
  until: number,
): Promise<Ended> {
  let ended = 0;
  for (let last = ''; ;) {
    const threadIds = await findThreads(pool, agentId, last);
    for (const threadId of threadIds) {
      if (performance.now() >= until) return { ended, complete: false };
      // Skips a contended Thread. The query below still finds it, and the next round ends it.
      const { outcome } = await handler.handle({ threadId, commands: [{ type: 'terminate_thread' }] });
      if (outcome === 'appended') ended++;
      last = threadId;
    }
    if (threadIds.length < BATCH) break;
  }
  return { ended, complete: (await findThreads(pool, agentId, '', 1)).length === 0 };
}

/** Continues interrupted deletions, as a round of housekeeping. Returns whether the next round can make progress. */
export async function endThreadsOfDeletedAgents(pool: Pool, handler: CommandHandler, forMs: number): Promise<boolean> {
  const { rows } = await pool
    .query<{ id: string; settled: boolean }>(
      `select id, deleted_at < now() - $1 * interval '1 second' as settled from agents
       where deleted_at is not null and threads_ended_at is null
       order by deleted_at
       limit 10`,
      [SETTLED_AFTER_S],
    )
    .catch(rethrowUnavailable);
  const until = performance.now() + forMs;
  let total = 0;
  let isLeft = false;
  for (const { id, settled } of rows) {
    const { ended, complete } = await endThreadsOf(pool, handler, id, until);
    total += ended;
    if (!complete) isLeft = true;
    else if (settled) await pool.query('update agents set threads_ended_at = now() where id = $1', [id]);
  }
  // Without progress, an immediate retry would only delay the other chores.
  return isLeft && total > 0;
}

async function findThreads(pool: Pool, agentId: string, after: string, limit = BATCH): Promise<string[]> {
  const values = [agentId, after, limit];
  const { rows } = await pool.query<{ threadId: string }>({ ...THREADS_TO_END, values }).catch(rethrowUnavailable);
  return rows.map(({ threadId }) => threadId);
}
