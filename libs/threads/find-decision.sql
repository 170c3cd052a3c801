-- Returns the stored decision on the confirmation request $2 of the Thread $1.
select data ->> 'decision' as decision
from events
where thread_id = $1 and type = 'tool.confirmation_decided' and data ->> 'requestId' = $2
order by id desc
limit 1
