-- The open step of a claim, and the version of the stream. Reads backwards from the end of the stream to the last delta or message
-- of the claim, at most to the claim itself.
select s.version,
       (select case when e.type in ('assistant.text_added', 'assistant.thinking_added') then (e.data ->> 'step')::integer end
        from events e
        where e.thread_id = s.thread_id
          and e.run_id = $2
          and e.attempt = $3
          and e.type in ('run.claimed', 'run.requeued', 'assistant.text_added', 'assistant.thinking_added', 'assistant.message_added')
        order by e.version desc
        limit 1) as "openStep"
from streams s
where s.thread_id = $1
