-- Returns the public entries strictly after an event id, oldest first. '' is before every id. Returns at most $3 entries, and
-- none after the one that exceeds $4 bytes. The limit applies to the stored sizes, which are known without reading the entries,
-- and then to the sizes as shown. "found" is the number of entries without the byte limit, at most $3 + 1.
-- If $5, the decisions on confirmation requests are entries too, although they are not public. Each part scans its own index.
select "threadId", version, id, type, "schemaVersion", data, "runId", attempt, public, "occurredAt", found
from (
  select *, sum(octet_length(data::text)) over (order by id rows unbounded preceding) - octet_length(data::text) as before
  from (
    select "threadId", version, id, type, "schemaVersion",
           case when type = 'tool.completed' and jsonb_typeof(data) = 'object' then data - 'result' else data end as data,
           "runId", attempt, public, "occurredAt", found
    from (
      select *, count(*) over ()::integer as found, row_number() over by_id as place,
             sum(stored) over by_id - stored as "storedBefore"
      from (
        select thread_id as "threadId", version, id, type, schema_version as "schemaVersion", data,
               run_id as "runId", attempt, public, occurred_at as "occurredAt",
               -- The result of a tool is not shown.
               case when type = 'tool.completed' then 0 else pg_column_size(data) * case when pg_column_compression(data) is null then 1 else 8 end end as stored
        from (
          (select * from events where thread_id = $1 and public and id > $2 order by id limit $3::bigint + 1)
          union all
          (select * from events
           where $5::boolean and thread_id = $1 and type = 'tool.confirmation_decided' and not public and id > $2
           order by id limit $3::bigint + 1)
        ) entry
        order by id
        limit $3::bigint + 1
      ) entries
      window by_id as (order by id rows unbounded preceding)
    ) placed
    where "storedBefore" < $4::bigint and place <= $3::bigint
  ) shown
) sized
where before < $4::bigint
order by id
