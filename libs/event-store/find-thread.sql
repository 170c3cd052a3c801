-- Reads a Thread, its most recent Run if $2 is true, the version of its stream, and the last entry of its log in one snapshot.
-- The Run is optional, because its final output may be a megabyte. If $3 is true, decisions are entries too. The look-up by requests
-- and decisions needs no other type, because requests are entries anyway.
select to_jsonb(t) as thread, case when $2::boolean then to_jsonb(r) end as run,
       (select version from streams s where s.thread_id = t.thread_id) as version,
       greatest(
         coalesce((select max(id) from events e where e.thread_id = t.thread_id and e.public), ''),
         case when $3::boolean then (
           select max(id) from events e
           where e.thread_id = t.thread_id and e.type in ('tool.confirmation_requested', 'tool.confirmation_decided')
         ) end
       ) as "lastEntryId"
from thread_summaries t
left join run_summaries r on r.run_id = t.last_run_id
where t.thread_id = $1
