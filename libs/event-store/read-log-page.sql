-- Returns a page of the public log for streams: entries strictly after an event id, oldest first. '' is before every id. Returns
-- at most $3 entries, and none after the one that exceeds $4 bytes, so that large entries do not fill the memory. The byte limit
-- works as in read-log-after.sql. Each row also has the end of the stream and the number of entries without the byte limit. If
-- there are no entries, one row has only the end of the stream. Returns no row if there is no such Thread. One page serves plain and
-- extended readers, so it always has the decisions on confirmation requests. Plain entries omit them, because they are not public.
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
          from (
            (select * from events where thread_id = $1 and public and id > $2 order by id limit $3)
            union all
            (select * from events
             where thread_id = $1 and type = 'tool.confirmation_decided' and not public and id > $2
             order by id limit $3)
          ) entry
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
