-- The stored events of the Thread $1, newest first: those before the version $2, at most $3 of them, and no more once they
-- pass $4 bytes.
select "threadId", version, id, type, "schemaVersion", data, "runId", attempt, public, "occurredAt", bytes
from (
  select *, sum(octet_length(data::text)) over (order by version desc rows unbounded preceding) as bytes
  from (
    select thread_id as "threadId", version, id, type, schema_version as "schemaVersion", data,
           run_id as "runId", attempt, public, occurred_at as "occurredAt"
    from events
    where thread_id = $1 and ($2::integer is null or version < $2)
    order by version desc
    limit $3
  ) newest
) sized
where bytes - octet_length(data::text) < $4
order by version desc
