-- Returns the same page as list-threads.sql, if `:run_statuses` (of the newest Run) contains only statuses of live and failed Runs.
-- Starts at these Runs, because few Threads have one. Each live Run has a work item, and failed Runs have an index.
select t.*
from (
  select run_id, thread_id from run_work
  where agent_id = any ($2::text[]) and :run_statuses && array['queued', 'booting', 'running', 'waiting_input']
    and (select r.status from run_summaries r where r.run_id = run_work.run_id) = any (:run_statuses)
  union all
  select run_id, thread_id from run_summaries where error is not null and 'failed' = any (:run_statuses)
) candidate
-- `limit` makes the planner look up each Thread by its key.
cross join lateral (
  select :thread_columns
  from thread_summaries
  where thread_id = candidate.thread_id and last_run_id = candidate.run_id and :owner = $1 and agent_id = any ($2::text[])
    and ($3::text is null or status = $3)
    and ($4::boolean is null or archived = $4)
    and ($5::timestamptz is null or (updated_at, thread_id) < ($5, $6::text))
  limit 1
) t
order by t.updated_at desc, t.thread_id desc
limit $7
