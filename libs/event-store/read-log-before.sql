-- The latest public entries before an event id, oldest first. 'Z' is after every id.
select * from (
  select thread_id as "threadId", version, id, type, schema_version as "schemaVersion",
         case when type = 'tool.completed' and jsonb_typeof(data) = 'object' then data - 'result' else data end as data,
         run_id as "runId", attempt, public, occurred_at as "occurredAt"
  from events
  where thread_id = $1 and public and id < $2
  order by id desc
  limit $3
) latest
order by id
