-- Due work items for the reaper: expired leases and time limits, the longest overdue first.
--
-- `now()` instead of `clock_timestamp()`, because only `now()` can use an index. The append that follows checks again by the clock.
-- `holder is not null` is equivalent to `state = 'leased'`, and has a partial index.
select run_id    as "runId",
       thread_id as "threadId",
       state,
       dispatch,
       attempt,
       holder,
       coalesce(work_until <= now(), false) as "workOver"
from run_work
where (due_at <= now() and (state in ('leased', 'waiting') or (state = 'ready' and not $1::boolean))
       or holder is not null and work_until <= now())
  and run_id <> all ($2::text[])
order by due_at
limit $3
