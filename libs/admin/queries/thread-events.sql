-- The stored events of the Thread $1 before the version $2, newest first, at most $3. Stops after $4 bytes, first by the stored
-- size, which is known without reading them.
select "threadId", version, id, type, "schemaVersion", data, "runId", attempt, public, "occurredAt"
from (
  select *, sum(octet_length(data::text)) over newest_first - octet_length(data::text) as after
  from (
    select *, sum(stored) over newest_first - stored as "storedAfter"
    from (
      select thread_id as "threadId", version, id, type, schema_version as "schemaVersion", data,
             run_id as "runId", attempt, public, occurred_at as "occurredAt", pg_column_size(data) * case when pg_column_compression(data) is null then 1 else 8 end as stored
      from events
      where thread_id = $1 and ($2::integer is null or version < $2)
      order by version desc
      limit $3
    ) newest
    window newest_first as (order by version desc rows unbounded preceding)
  ) placed
  where "storedAfter" < $4
  window newest_first as (order by version desc rows unbounded preceding)
) sized
where after < $4
order by version desc
