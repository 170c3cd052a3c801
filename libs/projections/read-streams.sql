-- The next state rows by thread id, each with the last event of its stream. Returns at least one row, and so many that they
-- have about $2 events together.
select page.thread_id, page.version, page.last_event_id, page.last_occurred_at, page.state,
       head.version, head.id, head.occurred_at
from (
  select *, sum(version) over (order by thread_id) - version as events_before
  from (select * from streams where thread_id >= $1 order by thread_id limit 1000) as next
) as page
left join lateral (
  select version, id, occurred_at from events where thread_id = page.thread_id order by version desc limit 1
) as head on true
where events_before < $2
order by page.thread_id
