-- Returns the latest public entries before an event id, oldest first. 'Z' is after every id. Limits and $5 as in read-log-after.sql.
select "threadId", version, id, type, "schemaVersion", data, "runId", attempt, public, "occurredAt", found
from (
  select *, sum(octet_length(data::text)) over (order by id desc rows unbounded preceding) - octet_length(data::text) as after
  from (
    select "threadId", version, id, type, "schemaVersion",
           case when type = 'tool.completed' and jsonb_typeof(data) = 'object' then data - 'result' else data end as data,
           "runId", attempt, public, "occurredAt", found
    from (
      select *, count(*) over ()::integer as found, row_number() over newest_first as place,
             sum(stored) over newest_first - stored as "storedAfter"
      from (
        select thread_id as "threadId", version, id, type, schema_version as "schemaVersion", data,
               run_id as "runId", attempt, public, occurred_at as "occurredAt",
               case when type = 'tool.completed' then 0 else pg_column_size(data) * case when pg_column_compression(data) is null then 1 else 8 end end as stored
        from (
          (select * from events where thread_id = $1 and public and id < $2 order by id desc limit $3::bigint + 1)
          union all
          (select * from events
           where $5::boolean and thread_id = $1 and type = 'tool.confirmation_decided' and not public and id < $2
           order by id desc limit $3::bigint + 1)
        ) entry
        order by id desc
        limit $3::bigint + 1
      ) entries
      window newest_first as (order by id desc rows unbounded preceding)
    ) placed
    where "storedAfter" < $4::bigint and place <= $3::bigint
  ) shown
) sized
where after < $4::bigint
order by id
