import type { Pool } from 'pg';
import { rethrowUnavailable } from '#platform';

/**
 * Deletes bulk actions that ended 30 days ago, and those that were planned a day ago and not started, as a part of housekeeping.
 * Returns whether there may be more.
 */
export async function purgeBulkActions(pool: Pool): Promise<boolean> {
  const { rowCount } = await pool
    .query(
      `delete from bulk_actions where id = any (array(
         select id from bulk_actions
         where started_at is null and planned_at < now() - interval '1 day' or ended_at < now() - interval '30 days'
         limit 10
       ))`,
    )
    .catch(rethrowUnavailable);
  return rowCount === 10;
}
