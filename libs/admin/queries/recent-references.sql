-- The references that begin with $1, of the newest 100,000 Threads, the last used first, at most $2.
select value
from (
  select ref as value, max(thread_id) as last
  from (
    select coalesce(external_ref, client_external_ref) as ref, thread_id
    from thread_summaries
    order by thread_id desc
    limit 100000
  ) as newest
  where starts_with(lower(ref), lower($1))
  group by ref
) as found
order by last desc
limit $2
