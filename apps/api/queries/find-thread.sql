-- A Thread, its most recent Run, and how many events its stream has, as of one moment.
select to_jsonb(t) as thread, to_jsonb(r) as run,
       (select version from streams s where s.thread_id = t.thread_id) as version
from thread_summaries t
left join run_summaries r on r.run_id = t.last_run_id
where t.thread_id = $1
