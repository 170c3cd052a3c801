-- Returns the events from which messages are assembled, for the newest $3 Runs that were queued before the event $2 ('Z' is after
-- every id). Also returns the end of the stream. Reads all from one snapshot.
-- Reads no deltas, except those of the open step of a Run that is active or did not complete. These are joined to one row per type.
-- The page ends with the Run that exceeds $4 bytes. If the newest Run alone exceeds them, its older steps are left out, and
-- "truncated" is true. The limit applies to stored sizes, and then to the sizes as shown. "nextId" is null on the last page.
-- If no event is on the page, one row has only the end of the stream. Returns no row if there is no such Thread.
with
queued as (
  select run_id, id, row_number() over (order by id desc) as place
  from (
    select run_id, id
    from events
    where thread_id = $1 and type = 'run.queued' and id < $2
    order by id desc
    limit $3::bigint + 1
  ) newest
),
stored as (
  select queued.place, event.*
  from queued
  cross join lateral (
    select version, id, type, schema_version, data, run_id, attempt, public, occurred_at,
           -- The result of a tool is not shown.
           case when type = 'tool.completed' then 0 else pg_column_size(data) * case when pg_column_compression(data) is null then 1 else 8 end end as size
    from events
    where events.run_id = queued.run_id
      and type in (
        'message.added', 'assistant.message_added', 'tool.started', 'tool.completed', 'tool.confirmation_requested',
        'tool.confirmation_decided', 'file.changed', 'files.updated', 'run.started', 'run.requeued', 'run.completed', 'run.failed',
        'run.cancelled', 'run.expired'
      )
    offset 0
  ) event
  where queued.place <= $3::bigint
),
sizes as (
  select place, run_id, sum(size) as size,
         bool_or(type = 'run.completed') as "isCompleted",
         -- A step has no deltas before the last other event of its Run, such as its start.
         max(version) filter (where type not in ('message.added', 'run.completed', 'run.failed', 'run.cancelled', 'run.expired')) as begun,
         min(version) filter (where type in ('run.completed', 'run.failed', 'run.cancelled', 'run.expired')) as ended
  from stored
  group by place, run_id
),
page as (
  select place, run_id, "isCompleted", begun, ended
  from (select *, sum(size) over (order by place) - size as newer from sizes) placed
  where newer < $4::bigint
),
shown as (
  select place, version, id, type, schema_version, run_id, attempt, public, occurred_at,
         case
           when jsonb_typeof(data) <> 'object' then data
           when type = 'assistant.message_added'
             then jsonb_strip_nulls(jsonb_build_object('text', data -> 'text', 'thinking', data -> 'thinking', 'step', data -> 'step'))
           when type = 'tool.completed' then data - 'result' - 'fileIds'
           else data
         end as data
  from stored
  where place in (select place from page)
  union all
  select page.place, delta.*
  from page
  cross join lateral (
    select max(version) as version, max(id) as id, type, schema_version, run_id, attempt, public, min(occurred_at) as occurred_at,
           jsonb_strip_nulls(jsonb_build_object('text', string_agg(data ->> 'text', '' order by version), 'step', data -> 'step')) as data
    from events
    where events.thread_id = $1
      and events.version > page.begun and events.version < coalesce(page.ended, 2147483647)
      and events.run_id = page.run_id
      and events.type in ('assistant.text_added', 'assistant.thinking_added')
    group by type, schema_version, run_id, attempt, public, data -> 'step'
  ) delta
  where not page."isCompleted"
),
sized as (
  select *, sum(octet_length(data::text)) over (order by place, version desc rows unbounded preceding) - octet_length(data::text) as newer
  from shown
),
fitting as (
  select *, max(newer) over (partition by place) >= $4::bigint as "isCut"
  from sized
),
messages as (
  select * from fitting
  where not "isCut" or place = 1 and (newer < $4::bigint or type in ('message.added', 'run.started', 'run.completed', 'run.failed', 'run.cancelled', 'run.expired'))
),
attachments as (
  select version, id, type, schema_version, data, run_id, attempt, public, occurred_at
  from events
  where thread_id = $1 and type = 'files.updated' and run_id is null
    and id < (select max(id) from messages where type = 'message.added' and data -> 'fileIds' <> '[]')
    and data ->> 'fileId' in (
      select jsonb_array_elements_text(data -> 'fileIds')
      from messages
      where type = 'message.added' and jsonb_typeof(data -> 'fileIds') = 'array'
    )
),
-- A Run without events has no size, and is on the page.
page_end as (
  select coalesce((select min(place) from sizes where place not in (select place from messages)) - 1, $3::bigint) as place
)
select streams.last_event_id as "lastEventId",
       (select queued.id
        from queued
        where queued.place = page_end.place and exists (select from queued where queued.place > page_end.place)) as "nextId",
       streams.thread_id as "threadId", event.version, event.id, event.type, event.schema_version as "schemaVersion", event.data,
       event.run_id as "runId", event.attempt, event.public, event.occurred_at as "occurredAt",
       coalesce(event."isCut", false) as truncated
from streams
cross join page_end
left join (
  select version, id, type, schema_version, data, run_id, attempt, public, occurred_at, "isCut" from messages
  union all
  select version, id, type, schema_version, data, run_id, attempt, public, occurred_at, false from attachments
) event on true
where streams.thread_id = $1
order by event.version
