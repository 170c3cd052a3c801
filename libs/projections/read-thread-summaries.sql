-- The Thread summaries of a range of thread ids.
select :thread_columns
from thread_summaries
where thread_id between $1 and $2
