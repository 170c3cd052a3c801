-- A page of the public log for streams: the entries strictly after an event id, oldest first, at most $3 of them, and no
-- more once they pass $4 bytes, so that a page of large entries does not fill the memory. '' is before every id. With each
-- row, and alone where there is no entry, where the stream stood at that moment; no row: there is no such Thread.
select stream.*, page.*
from (
  select version as "streamVersion", last_event_id as "streamEventId",
         jsonb_array_length(coalesce(state -> 'runs', '[]')) = 0 as idle
  from streams
  where thread_id = $1
) stream
left join lateral (
  select "threadId", version, id, type, "schemaVersion", data, "runId", attempt, public, "occurredAt", bytes
  from (
    select *, sum(octet_length(data::text)) over (order by id)::integer as bytes
    from (
      select thread_id as "threadId", version, id, type, schema_version as "schemaVersion",
             case when type = 'tool.completed' and jsonb_typeof(data) = 'object' then data - 'result' else data end as data,
             run_id as "runId", attempt, public, occurred_at as "occurredAt"
      from events
      where thread_id = $1 and public and id > $2
      order by id
      limit $3
    ) entries
  ) sized
  where bytes - octet_length(data::text) < $4
) page on true
order by page.id
