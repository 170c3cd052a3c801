-- What the model is given: stored messages, decisions and tool results, by a partial index that has no pieces in it. Of what
-- people said, and of all else, the newest $2 bytes are whole. Of what is older, texts and results longer than that keep
-- their first $3 characters, with the note $4, and inputs and continuations go: what is called, answered and used is known of
-- every step for ever. The newest message of the model is whole in any case, since its calls may still have to be run; the
-- start of a call is its id, and summaries are for people. What is not of the types that this release stores stays as it is, for the reader to find.
select "threadId", version, id, type, "schemaVersion",
       case
         when type = 'assistant.message_added' and steps = 1 or jsonb_typeof(data) <> 'object'
           or case type when 'message.added' then said else done end <= $2::bigint then data
         else data - 'continuation'
           || case when jsonb_typeof(data -> field) = 'string' and length(data ->> field) > $3::integer + length($4::text)
                   then jsonb_build_object(field, left(data ->> field, $3) || $4) else '{}' end
           || case when jsonb_typeof(data -> 'toolCalls') = 'array' then jsonb_build_object('toolCalls', (
                select coalesce(jsonb_agg(
                         call
                         || case when jsonb_typeof(call -> 'toolInput') = 'object' and length((call -> 'toolInput')::text) > $3
                                 then '{"toolInput": {}}'::jsonb else '{}' end
                         || case when jsonb_typeof(call -> 'invalidInput') = 'string'
                                 then jsonb_build_object('invalidInput', left(call ->> 'invalidInput', $3)) else '{}' end
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
             else data
           end as data,
           run_id as "runId", attempt, public, occurred_at as "occurredAt"
    from events
    where thread_id = $1
      and type in ('message.added', 'assistant.message_added', 'tool.confirmation_decided', 'tool.started', 'tool.completed')
  ) events
  window newest_first as (order by version desc rows unbounded preceding)
) sized
-- The newest first, as they are read: sorted the other way, all of it would go to disk.
order by version desc
