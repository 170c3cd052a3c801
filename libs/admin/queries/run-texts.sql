-- The first $4 characters of the input and the output of the Run $1, with the length of each. The input is the newest
-- message of the Thread $2 before the version $3 of `run.queued`, because a retry adds no message.
select case when asked.text is not null
         then json_build_object('text', left(asked.text, $4), 'length', length(asked.text)) end as input,
       case when r.final_output ->> 'text' <> ''
         then json_build_object('text', left(r.final_output ->> 'text', $4), 'length', length(r.final_output ->> 'text')) end as output
from run_summaries r
left join lateral (
  -- The index events_transcript contains this type.
  select data ->> 'text' as text
  from events
  where thread_id = $2 and version < $3 and type = 'message.added'
  order by version desc
  limit 1
) asked on true
where r.run_id = $1
