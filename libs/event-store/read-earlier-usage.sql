-- Returns the steps of a Run before version $3, and the tokens that they used, by model: what its limits count beside a cut
-- transcript.
-- Ignores usage of unexpected JSON types, which the reader of a transcript refuses.
select fallback, count(*)::integer as steps,
       coalesce(sum((usage ->> 'inputTokens')::float8) filter (where jsonb_typeof(usage -> 'inputTokens') = 'number'), 0) as "inputTokens",
       coalesce(sum((usage ->> 'outputTokens')::float8) filter (where jsonb_typeof(usage -> 'outputTokens') = 'number'), 0) as "outputTokens",
       coalesce(sum((usage ->> 'cachedInputTokens')::float8)
                filter (where jsonb_typeof(usage -> 'cachedInputTokens') = 'number'), 0) as "cachedInputTokens"
from events
cross join lateral (
  select data -> 'usage' as usage,
         case when jsonb_typeof(data #> '{model,fallback}') = 'number' then (data #>> '{model,fallback}')::float8 else 0 end as fallback
) as used
where thread_id = $1 and run_id = $2 and type = 'assistant.message_added' and version < $3
group by fallback
