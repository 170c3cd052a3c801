-- Reads a Thread as find-thread.sql does, without its Run, and the page of its log after $4 as read-log-page.sql does: at most $5
-- entries. The page is null if it has more than $6 bytes, or if the stream has more than $7 events. Without $7, it may have any
-- number. All of it is from one snapshot.
with found as materialized (
  :include(find-thread.sql)
)
select found.*,
       case when $7::integer is null or found.version <= $7 then (
         select case when coalesce(sum(octet_length(page.data::text)), 0) <= $6 then json_agg(page order by page.id) end
         from (
           :include(read-log-page.sql $2=$4 $3=$5 $4=$6)
         ) page
       ) end as page
from found
