-- A Thread and its most recent Run, as of one moment.
select to_jsonb(t) as thread, to_jsonb(r) as run
from thread_summaries t
left join run_summaries r on r.run_id = t.last_run_id
where t.thread_id = $1
