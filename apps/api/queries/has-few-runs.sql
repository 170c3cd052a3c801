-- Returns whether at most $3 Runs are candidates of list-threads-by-run.sql, for the Agents ($1) and the statuses ($2).
select count(*) <= $3::bigint as few
from (
  select from (
    select from run_work
    where agent_id = any ($1::text[]) and $2::text[] && array['queued', 'booting', 'running', 'waiting_input']
    union all
    select from run_summaries where error is not null and 'failed' = any ($2)
  ) candidates
  limit $3::bigint + 1
) counted
