-- A page of the public log for streams: the entries strictly after an event id, oldest first, at most $3 of them, and no
-- more once they pass $4 bytes, so that a page of large entries does not fill the memory: first as they are stored, which is known without
-- reading them, then as they are shown. '' is before every id. With each row, and alone where there is no entry, where the
-- stream stood at that moment, and how many entries there are without the bound on bytes; no row: there is no such Thread.
select stream.*, page.*
from (
  select version as "streamVersion", last_event_id as "streamEventId",
         jsonb_array_length(coalesce(state -> 'runs', '[]')) = 0 as idle
  from streams
  where thread_id = $1
) stream
left join lateral (
  select "threadId", version, id, type, "schemaVersion", data, "runId", attempt, public, "occurredAt", found
  from (
    select *, sum(octet_length(data::text)) over (order by id rows unbounded preceding) - octet_length(data::text) as before
    from (
      select "threadId", version, id, type, "schemaVersion",
             case when type = 'tool.completed' and jsonb_typeof(data) = 'object' then data - 'result' else data end as data,
             "runId", attempt, public, "occurredAt", found
      from (
        select *, count(*) over ()::integer as found,
               sum(stored) over (order by id rows unbounded preceding) - stored as "storedBefore"
        from (
          select thread_id as "threadId", version, id, type, schema_version as "schemaVersion", data,
                 run_id as "runId", attempt, public, occurred_at as "occurredAt",
                 -- The result of a tool is not shown.
                 case when type = 'tool.completed' then 0 else pg_column_size(data) * case when pg_column_compression(data) is null then 1 else 8 end end as stored
          from events
          where thread_id = $1 and public and id > $2
          order by id
          limit $3
        ) entries
      ) placed
      where "storedBefore" < $4::bigint
    ) shown
  ) sized
  where before < $4::bigint
) page on true
order by page.id
