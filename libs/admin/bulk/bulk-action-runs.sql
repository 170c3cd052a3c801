-- A page of the Runs of a bulk action ($1), newest first, with the outcome $2 if given, before the cursor $3, at most $4.
select run_id as id, thread_id as "threadId", coalesce(outcome, 'left') as outcome, reason, new_run_id as "newRunId"
from bulk_action_runs
where action_id = $1
  and ($2::text is null or coalesce(outcome, 'left') = $2)
  and ($3::text is null or run_id < $3)
order by run_id desc
limit $4
