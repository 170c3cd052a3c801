-- What the reaper has to do something about: leases that ended, limits that passed, the longest overdue first.
--
-- `now()` and not `clock_timestamp()`: only the former can be looked up in an index, and the append that follows checks
-- again, by the clock. `holder is not null` says the same as `state = 'leased'` and has an index with just those rows.
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
