-- Those of the Runs that are of this Thread.
select run_id, thread_id, status, trigger, created_at, started_at, completed_at, updated_at, error, final_output
from run_summaries
where run_id = any ($2::text[]) and thread_id = $1
