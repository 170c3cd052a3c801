-- Reads a Thread as find-thread.sql does, without its Run, and the page of its log after $4 as read-log-page.sql does: at most $5
-- entries. The page is null if its entries have more than $6 bytes as they are stored, so that this read takes about a millisecond for
-- every Thread. It is also null if the stream has more than $7 events. Without $7, it may have any number. All of it is from one snapshot.
with found as materialized (
  :include(find-thread.sql)
)
select found.*,
       case when ($7::integer is null or found.version <= $7) and (
         select coalesce(sum(pg_column_size(data)), 0) <= $6
         from (select data from events where thread_id = $1 and public and id > $4 order by id limit $5) stored
       ) then (
         select json_agg(page order by page.id)
         from (
           :include(read-log-page.sql $2=$4 $3=$5 $4=$6)
         ) page
       ) end as page
from found
