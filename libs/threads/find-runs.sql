-- The Runs ($2) that belong to this Thread ($1).
select :run_columns
from run_summaries
where run_id = any ($2::text[]) and thread_id = $1
