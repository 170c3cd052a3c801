-- Reads a Thread as `load-thread.sql` does, the size of its transcript, and the transcript itself, oldest event first, if it has
-- at most $6 bytes and no texts of stopped messages. All of it is from one snapshot.
with
loaded as materialized (
  :include(load-thread.sql)
),
size as materialized (
  :include(read-transcript-bytes.sql)
)
select loaded.*, size.*,
       case when size.bytes <= $6::float8 and not size."hasStops" then (
         select coalesce(json_agg(events order by events.version), '[]') from (
           :include(read-transcript.sql)
         ) events
       ) end as transcript
from loaded, size
