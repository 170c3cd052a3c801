-- Returns the newest $4 events for the model: stored messages, decisions and tool events, by a partial index without deltas.
-- The newest $2 bytes of what people said, and of everything else, are whole. Older texts and results keep their first $3
-- characters, with the note $5 if they were longer. Older continuations are left out, and longer inputs are emptied or cut. So
-- the calls, the answers and the usage of each of these steps stay known. The newest message of the model is always whole, because its calls may still have to
-- run. A started call has only its id. Summaries and thinking are left out, because they are for people. Data of unexpected JSON
-- types stays unchanged, so that the reader can detect it.
select "threadId", version, id, type, "schemaVersion",
       case
         when type = 'assistant.message_added' and steps = 1 or jsonb_typeof(data) <> 'object'
           or case type when 'message.added' then said else done end <= $2::bigint then data
         else data - 'continuation'
           || case when jsonb_typeof(data -> field) = 'string' and length(data ->> field) > $3::integer + length($5::text)
                   then jsonb_build_object(field, left(data ->> field, $3::integer) || $5) else '{}' end
           || case when jsonb_typeof(data -> 'toolCalls') = 'array' then jsonb_build_object('toolCalls', (
                select coalesce(jsonb_agg(
                         call
                         || case when jsonb_typeof(call -> 'toolInput') = 'object' and length((call -> 'toolInput')::text) > $3
                                 then '{"toolInput": {}}'::jsonb else '{}' end
                         || case when jsonb_typeof(call -> 'invalidInput') = 'string'
                                 then jsonb_build_object('invalidInput', left(call ->> 'invalidInput', $3::integer)) else '{}' end
                         order by place), '[]')
                from jsonb_array_elements(data -> 'toolCalls') with ordinality as calls (call, place)
              )) else '{}' end
       end as data,
       "runId", attempt, public, "occurredAt"
from (
  select *,
         case type when 'tool.completed' then 'result' else 'text' end as field,
         count(*) filter (where type = 'assistant.message_added') over newest_first as steps,
         sum(octet_length(data::text)) filter (where type = 'message.added') over newest_first as said,
         sum(octet_length(data::text)) filter (where type <> 'message.added') over newest_first as done
  from (
    select thread_id as "threadId", version, id, type, schema_version as "schemaVersion",
           case
             when jsonb_typeof(data) <> 'object' then data
             when type = 'tool.started' then jsonb_build_object('toolCallId', data -> 'toolCallId')
             when type = 'tool.completed' then data - 'summary'
             when type = 'assistant.message_added' then data - 'thinking'
             else data
           end as data,
           run_id as "runId", attempt, public, occurred_at as "occurredAt"
    from events
    where thread_id = $1
      and type in ('message.added', 'assistant.message_added', 'tool.confirmation_decided', 'tool.started', 'tool.completed')
    order by version desc
    limit $4
  ) events
  window newest_first as (order by version desc rows unbounded preceding)
) sized
-- Newest first, in reading order. The reverse order would sort everything on disk.
order by version desc
