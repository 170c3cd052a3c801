-- The tool call of the confirmation request $2 in the Thread $1, decided or not. Scans from the end, where open requests are.
select run_id as "runId", data ->> 'toolName' as "toolName"
from events
where thread_id = $1 and type = 'tool.confirmation_requested' and data ->> 'requestId' = $2
order by version desc
limit 1
