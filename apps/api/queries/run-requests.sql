-- Returns the status of the Runs $1 with their confirmation requests and decisions, oldest first. A Run without requests has one
-- row. $2 is an event id before all their events. Reads at most the newest $3 events of a Thread, and returns at most the newest $3 of
-- all. Returns the inputs of tools, newest first, until they exceed $4 bytes. `toolInput` is null in the remaining rows.
select r.run_id as "runId", r.status, e.type, e.attempt, e."requestId", e."toolCallId", e."toolName", e.decision, e.by,
       e.occurred_at as "occurredAt",
       case when e."storedAfter" < $4::bigint then e.data -> 'toolInput' end as "toolInput"
from run_summaries r
left join (
  select found.id, found.run_id, found.type, found.attempt, found.occurred_at, found.data,
         found.data ->> 'requestId'  as "requestId",
         found.data ->> 'toolCallId' as "toolCallId",
         found.data ->> 'toolName'   as "toolName",
         found.data ->> 'decision'   as decision,
         found.data ->> 'by'         as by,
         sum(found.stored) over (order by found.id desc rows unbounded preceding) - found.stored as "storedAfter"
  from (
    select event.*
    from (select distinct thread_id from run_summaries where run_id = any ($1::text[])) thread
    cross join lateral (
      select id, run_id, type, attempt, occurred_at, data,
             pg_column_size(data) * case when pg_column_compression(data) is null then 1 else 8 end as stored
      from events
      where thread_id = thread.thread_id and type in ('tool.confirmation_requested', 'tool.confirmation_decided')
        and id > $2 and run_id = any ($1::text[])
      order by id desc
      limit $3
    ) event
    order by event.id desc
    limit $3
  ) found
) e on e.run_id = r.run_id
where r.run_id = any ($1::text[])
order by e.id
