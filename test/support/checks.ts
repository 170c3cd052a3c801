import type { Database } from '#platform';
import { verify } from '#projections';
import { eventually } from '#testing';
import type { Acknowledged, LogEntry } from './client.ts';

/** The oracle: the whole database holds every invariant (docs/reliability.md#invariants). */
export async function expectHealthy({ pool }: Database): Promise<void> {
  const { findings } = await verify(pool);
  expect(findings).toEqual([]);
}

/** Waits until every Run that was ever made has completed. */
export async function allRunsCompleted({ pool }: Database, count: number, timeoutMs: number): Promise<void> {
  await eventually(
    async () => {
      const { rows } = await pool.query<{ status: string; runs: number }>(
        'select status, count(*)::integer as runs from run_summaries group by status',
      );
      if (rows.length === 1 && rows[0]?.status === 'completed' && rows[0].runs === count) return true;
      throw new Error(`Runs by status: ${JSON.stringify(rows)}`);
    },
    { what: `all ${count} Runs are completed`, timeoutMs },
  );
}

/** I1: what callers were told is there, in their words. */
export async function expectStored({ pool }: Database, acknowledged: readonly Acknowledged[]): Promise<void> {
  const { rows } = await pool.query<Acknowledged>(
    `select thread_id as "threadId", run_id as "runId", data->>'text' as text from events
     where thread_id = any ($1) and type = 'message.added'`,
    [acknowledged.map(({ threadId }) => threadId)],
  );
  const stored = new Map(rows.map((row) => [row.runId, row]));
  expect(acknowledged.map(({ runId }) => stored.get(runId))).toEqual(acknowledged);
}

/** I2 and I3 as a caller sees them: ids strictly increase, and the Run ends once, as its last entry. */
export function expectWholeLog(entries: LogEntry[], runId: string, message: string): void {
  const ids = entries.map(({ id }) => id);
  expect(ids).toEqual([...new Set(ids)].toSorted());
  const ends = entries.filter(
    ({ type, runId: of }) => of === runId && (type === 'run.completed' || type === 'run.failed'),
  );
  expect(ends.map(({ type }) => type)).toEqual(['run.completed']);
  expect(entries.filter(({ type }) => type === 'run.started')).toHaveLength(1);
  expect(lastMessage(entries)).toBe(message);
}

/** The pieces since the last cut, joined (docs/spec/decisions.md#cut-steps). */
export function lastMessage(entries: LogEntry[]): string {
  const cut = entries.findLastIndex(
    ({ type, content }) => type.startsWith('tool.') || (type === 'session.status' && content === 'RESCHEDULING'),
  );
  const pieces = entries.slice(cut + 1).filter(({ type }) => type === 'agent.message.delta');
  return pieces.map(({ content }) => content).join('');
}
