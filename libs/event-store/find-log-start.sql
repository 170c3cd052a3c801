-- Returns the id before the latest $2 entries of a Thread. Returns no row if the Thread has no more entries. If $3, the decisions on
-- confirmation requests are entries too, as in read-log-after.sql.
select id
from (
  (select id from events where thread_id = $1 and public order by id desc limit $2::bigint + 1)
  union all
  (select id from events where $3::boolean and thread_id = $1 and type = 'tool.confirmation_decided' and not public
   order by id desc limit $2::bigint + 1)
) entry
order by id desc
offset $2
limit 1
