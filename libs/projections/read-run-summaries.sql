-- The Run summaries of a range of thread ids.
select run_id, thread_id, status, trigger, created_at, started_at, completed_at, updated_at, error, final_output
from run_summaries
where thread_id between $1 and $2
