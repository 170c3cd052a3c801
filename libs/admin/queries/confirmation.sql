-- What the request $2 of the Thread $1 asks for, answered or not: from the end of the stream, where those that wait are.
select run_id as "runId", data ->> 'toolName' as "toolName"
from events
where thread_id = $1 and type = 'tool.confirmation_requested' and data ->> 'requestId' = $2
order by version desc
limit 1
