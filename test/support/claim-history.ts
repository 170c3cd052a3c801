import type { Pool } from 'pg';

const CLAIM_AND_ENDS = ['run.claimed', 'run.completed', 'run.failed', 'run.requeued', 'run.waiting'];

/**
 * Returns how many claims an organization's Runs had, and the most that held at once. Goes by the order in which events were
 * written, not by their times: a claim is decided before it waits for the lock of its limit.
 */
export async function claimHistory(pool: Pool, organizationId: string): Promise<{ most: number; claims: number }> {
  const { rows } = await pool.query<{ isClaim: boolean }>(
    `select type = 'run.claimed' as "isClaim" from events join thread_summaries using (thread_id)
     where organization_id = $1 and type = any ($2) and (attempt > 0 or type = 'run.claimed')
     order by global_position`,
    [organizationId, CLAIM_AND_ENDS],
  );
  let [now, most, claims] = [0, 0, 0];
  for (const { isClaim } of rows) {
    now += isClaim ? 1 : -1;
    claims += isClaim ? 1 : 0;
    most = Math.max(most, now);
  }
  return { most, claims };
}
