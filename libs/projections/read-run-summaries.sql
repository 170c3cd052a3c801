-- The Run summaries of a range of thread ids.
select :run_columns
from run_summaries
where thread_id between $1 and $2
