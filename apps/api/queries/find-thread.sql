-- A Thread, its most recent Run, how many events its stream has, and the last entry of its log, as of one moment.
select to_jsonb(t) as thread, to_jsonb(r) as run,
       (select version from streams s where s.thread_id = t.thread_id) as version,
       coalesce((select max(id) from events e where e.thread_id = t.thread_id and e.public), '') as "lastEntryId"
from thread_summaries t
left join run_summaries r on r.run_id = t.last_run_id
where t.thread_id = $1
