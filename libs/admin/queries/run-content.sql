-- The stored events with the content of the Run $1 after the version $2, oldest first, at most $3. Stops after $4
-- bytes, first by the stored size, which is known without reading the data. If it stops, the last event of the page has
-- `isFull`. The types are those of the index events_of_runs.
select "threadId", version, id, type, "schemaVersion", data, "runId", attempt, public, "occurredAt",
       total >= $4 or "storedTotal" >= $4 as "isFull"
from (
  select *, sum(octet_length(data::text)) over oldest_first as total, octet_length(data::text) as size
  from (
    select *, sum(stored) over oldest_first as "storedTotal"
    from (
      select thread_id as "threadId", version, id, type, schema_version as "schemaVersion", data,
             run_id as "runId", attempt, public, occurred_at as "occurredAt",
             pg_column_size(data) * case when pg_column_compression(data) is null then 1 else 8 end as stored
      from events
      where run_id = $1 and version > $2
        and type in (
          'message.added', 'assistant.message_added', 'tool.started', 'tool.completed', 'tool.confirmation_requested',
          'tool.confirmation_decided', 'file.changed', 'files.updated', 'run.started', 'run.requeued', 'run.completed', 'run.failed',
          'run.cancelled', 'run.expired'
        )
      order by version
      limit $3
    ) oldest
    window oldest_first as (order by version rows unbounded preceding)
  ) placed
  where "storedTotal" - stored < $4
  window oldest_first as (order by version rows unbounded preceding)
) sized
where total - size < $4
order by version
