-- The user ids that begin with $1, of the newest 100,000 Threads, the last used first, at most $2.
select value
from (
  select user_id as value, max(thread_id) as last
  from (select user_id, thread_id from thread_summaries order by thread_id desc limit 100000) as newest
  where starts_with(lower(user_id), lower($1))
  group by user_id
) as found
order by last desc
limit $2
