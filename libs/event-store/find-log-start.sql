-- The id after which the latest $2 public entries of a Thread stand; no row when it has no more than those.
select id from events where thread_id = $1 and public order by id desc offset $2 limit 1
