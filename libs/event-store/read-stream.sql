-- A piece of a stream, everything in it, oldest first.
select thread_id as "threadId", version, id, type, schema_version as "schemaVersion", data,
       run_id as "runId", attempt, public, occurred_at as "occurredAt"
from events
where thread_id = $1 and version > $2
order by version
limit $3
