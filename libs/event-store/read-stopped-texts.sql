-- Returns the visible text of each interrupted message, newest first: the deltas of the cancelled Run after its last
-- claim, requeue or message. Deltas before a requeue are void. The newest $2 bytes are whole. Older texts keep their first $3
-- characters, with the note $4 if they were longer. Only the newest 100 stops count, because each one reads its deltas. Leaves
-- out a Run that was never started (it has no duration), because its own events may be far back.
select "threadId", version, id, type, "schemaVersion",
       jsonb_build_object('text', case
         when newer <= $2::bigint or length(text) <= $3::integer + length($4::text) then text else left(text, $3) || $4
       end) as data,
       "runId", attempt, public, "occurredAt"
from (
  select stops.*, cut.text, sum(octet_length(cut.text)) over (order by version desc rows unbounded preceding) as newer
  from (
    select thread_id as "threadId", version, id, type, schema_version as "schemaVersion", run_id as "runId", attempt, public,
           occurred_at as "occurredAt"
    from events
    where thread_id = $1 and type = 'run.cancelled' and data ->> 'durationMs' is not null
    order by version desc
    limit 100
  ) stops
  cross join lateral (
    select string_agg(deltas.data ->> 'text', '' order by deltas.version) as text
    from events deltas
    where deltas.thread_id = $1 and deltas.run_id = stops."runId" and deltas.type = 'assistant.text_added'
      and deltas.version < stops.version
      and deltas.version > (
        select steps.version
        from events steps
        where steps.thread_id = $1 and steps.run_id = stops."runId" and steps.version < stops.version
          and steps.type in ('run.claimed', 'run.requeued', 'assistant.message_added')
        order by steps.version desc
        limit 1
      )
  ) cut
  where cut.text is not null
) texts
order by version desc
