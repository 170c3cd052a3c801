-- Returns the id before the latest $2 public entries of a Thread. Returns no row if the Thread has no more entries.
select id from events where thread_id = $1 and public order by id desc offset $2 limit 1
