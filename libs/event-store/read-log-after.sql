-- The public entries strictly after an event id, oldest first: how streams and `after` read on. '' is before every id.
select thread_id as "threadId", version, id, type, schema_version as "schemaVersion",
       case when type = 'tool.completed' and jsonb_typeof(data) = 'object' then data - 'result' else data end as data,
       run_id as "runId", attempt, public, occurred_at as "occurredAt"
from events
where thread_id = $1 and public and id > $2
order by id
limit $3
