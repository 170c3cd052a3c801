-- The events for the timeline of the Run $2 in the Thread $1, oldest first, at most $5. Filters: types $6, versions in ($3, $4].
-- Returns only the first of several text deltas, and only the fields of a timeline, because results can have a megabyte.
select version, type, attempt, "occurredAt", schema_version as "schemaVersion",
       case type
         when 'run.completed' then '{}'
         when 'tool.completed' then data - 'result' - 'summary'
         when 'tool.started' then data - 'toolInput' - 'invalidInput'
         when 'tool.confirmation_requested' then data - 'toolInput' - 'invalidInput'
         when 'assistant.text_added' then '{}'
         when 'assistant.message_added' then jsonb_build_object('toolCalls', (
           select coalesce(jsonb_agg(call - 'toolInput' - 'invalidInput' order by place), '[]')
           from jsonb_array_elements(data -> 'toolCalls') with ordinality as calls (call, place)
         )) || case when data ? 'model' then jsonb_build_object('model', data -> 'model') else '{}' end
         else data
       end as data
from (
  select version, type, attempt, schema_version, data, occurred_at as "occurredAt",
         lag(type) over (order by version) as before
  from events
  where thread_id = $1 and run_id = $2 and version > $3 and version <= $4
    and type = any ($6::text[])
) of_run
where type <> 'assistant.text_added' or before is distinct from type
order by version
limit $5
