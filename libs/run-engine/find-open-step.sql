-- The open step of a claim, or the title of its open tool, and the version of the stream. Reads backwards from the end of the stream
-- to the last delta, message or tool event of the claim, at most to the claim itself.
select s.version, open.step as "openStep", open.tool as "openTool"
from streams s
left join lateral (
  select case when e.type in ('assistant.text_added', 'assistant.thinking_added') then (e.data ->> 'step')::integer end as step,
         case when e.type = 'tool.started' then e.data ->> 'title' end as tool
  from events e
  where e.thread_id = s.thread_id
    and e.run_id = $2
    and e.attempt = $3
    and e.type in ('run.claimed', 'run.requeued', 'assistant.text_added', 'assistant.thinking_added', 'assistant.message_added',
                   'tool.started', 'tool.completed')
  order by e.version desc
  limit 1
) open on true
where s.thread_id = $1
