-- About how many bytes `read-transcript.sql` reads: of what people said, and of all else, the newest $2 bytes whole, and of what
-- is older at most $3 characters an event. Sizes are those of the binary form, unpacked: that takes no conversion to text, and
-- grows with the number of values, as parsed values do. `data || '{}'` unpacks what is stored compressed.
select coalesce(sum(case when newer <= $2::bigint then size else least(size, 4 * $3::bigint) end), 0)::float8 as bytes
from (
  select size, sum(size) over (partition by kind order by version desc rows unbounded preceding) as newer
  from (
    select version, type = 'message.added' as kind,
           pg_column_size(case when jsonb_typeof(data) = 'object' then data || '{}' else data end)::bigint as size
    from events
    where thread_id = $1
      and type in ('message.added', 'assistant.message_added', 'tool.confirmation_decided', 'tool.started', 'tool.completed')
  ) events
) sized
