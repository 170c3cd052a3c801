-- Reads a Thread as `load-thread.sql` does, and the size of its transcript, if at most 500 stored entries have at most $6 bytes. These
-- are counted as they are stored, which needs no decompression, so that the read takes about a millisecond for every Thread. Also
-- reads the transcript itself, oldest event first, if it has at most $6 bytes and no texts of stopped messages. All of it is from one
-- snapshot.
with
loaded as materialized (
  :include(load-thread.sql)
)
select loaded.*,
       case when (
         select count(*) <= 500 and coalesce(sum(pg_column_size(data)), 0) <= $6::float8
         from (
           select data
           from events
           where thread_id = $1
             and type in ('message.added', 'assistant.message_added', 'tool.confirmation_decided', 'tool.started', 'tool.completed')
           limit 501
         ) stored
       ) then (
         select json_build_object('size', size, 'events', case when size.bytes <= $6::float8 and not size."hasStops" then (
           select coalesce(json_agg(events order by events.version), '[]') from (
             :include(read-transcript.sql)
           ) events
         ) end)
         from (
           :include(read-transcript-bytes.sql)
         ) size
       ) end as small
from loaded
