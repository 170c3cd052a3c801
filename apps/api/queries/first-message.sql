-- The text of a Thread's first message, by the index of the transcript.
select data ->> 'text' as text
from events
where thread_id = $1 and type = 'message.added'
order by version
limit 1
