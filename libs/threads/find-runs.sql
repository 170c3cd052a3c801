-- Those of the Runs that are of this Thread.
select :run_columns
from run_summaries
where run_id = any ($2::text[]) and thread_id = $1
