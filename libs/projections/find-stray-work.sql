-- Work items of Runs that are in no state row, so are not live.
select w.run_id as "runId", w.thread_id as "threadId"
from run_work w
left join streams s on s.thread_id = w.thread_id
where w.thread_id >= $1
  and not exists (
    select from jsonb_array_elements(case jsonb_typeof(s.state -> 'runs') when 'array' then s.state -> 'runs' end) as run
    where run ->> 'id' = w.run_id
  )
order by w.thread_id, w.run_id
