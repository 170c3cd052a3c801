-- Returns all events of a stream after a version, oldest first. Returns at most $3 events, and none after the one that exceeds $4
-- bytes. The limit applies to the stored sizes, which are known without reading the events, and then to the sizes as text.
select "threadId", version, id, type, "schemaVersion", data, "runId", attempt, public, "occurredAt"
from (
  select *, sum(octet_length(data::text)) over (order by version rows unbounded preceding) - octet_length(data::text) as before
  from (
    select *, sum(stored) over (order by version rows unbounded preceding) - stored as "storedBefore"
    from (
      select thread_id as "threadId", version, id, type, schema_version as "schemaVersion", data,
             run_id as "runId", attempt, public, occurred_at as "occurredAt", pg_column_size(data) * case when pg_column_compression(data) is null then 1 else 8 end as stored
      from events
      where thread_id = $1 and version > $2
      order by version
      limit $3
    ) events
  ) placed
  where "storedBefore" < $4::bigint
) sized
where before < $4::bigint
order by version
