-- A page of a Thread's Runs, newest first, after the Run that the cursor names. Runs neither move nor go, so pages are
-- stable.
select run_id, thread_id, status, trigger, created_at, started_at, completed_at, updated_at, error, final_output
from run_summaries
where thread_id = $1
  and ($2::text is null
       or (created_at, run_id) < (select c.created_at, c.run_id from run_summaries c
                                  where c.run_id = $2 and c.thread_id = $1))
order by created_at desc, run_id desc
limit $3
