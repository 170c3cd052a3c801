-- Estimates the bytes that `read-transcript.sql` and `read-stopped-texts.sql` read: of the newest $4 events, and of the stopped
-- texts. Messages of people, stopped texts and the rest are three groups. In each, the newest $2 bytes count whole, and older
-- texts with at most $3 characters. Sizes are those of the uncompressed binary form: it needs no conversion to text, and grows
-- with the number of values, as parsed values do.
-- `data || '{}'` and `data - 'thinking'` decompress stored data. `hasStops` is whether there are stopped texts at all.
select coalesce(sum(case when newer <= $2::bigint then size else least(size, 4 * $3::bigint) end), 0)::float8 as bytes,
       coalesce(bool_or(kind = 'seen'), false) as "hasStops"
from (
  select kind, size, sum(size) over (partition by kind order by version desc rows unbounded preceding) as newer
  from (
    select version, case type when 'message.added' then 'said' else 'done' end as kind,
           pg_column_size(case when jsonb_typeof(data) <> 'object' then data
                               when type = 'assistant.message_added' then data - 'thinking' else data || '{}' end)::bigint as size
    from (
      select version, type, data
      from events
      where thread_id = $1
        and type in ('message.added', 'assistant.message_added', 'tool.confirmation_decided', 'tool.started', 'tool.completed')
      order by version desc
      limit $4
    ) newest
    union all
    select stops.version, 'seen' as kind, cut.size
    from (
      select version, run_id
      from events
      where thread_id = $1 and type = 'run.cancelled' and data ->> 'durationMs' is not null
      order by version desc
      limit 100
    ) stops
    cross join lateral (
      select sum(octet_length(deltas.data ->> 'text')) as size
      from events deltas
      where deltas.thread_id = $1 and deltas.run_id = stops.run_id and deltas.type = 'assistant.text_added'
        and deltas.version < stops.version
        and deltas.version > (
          select steps.version
          from events steps
          where steps.thread_id = $1 and steps.run_id = stops.run_id and steps.version < stops.version
            and steps.type in ('run.claimed', 'run.requeued', 'assistant.message_added')
          order by steps.version desc
          limit 1
        )
    ) cut
    where cut.size is not null
  ) events
) sized
