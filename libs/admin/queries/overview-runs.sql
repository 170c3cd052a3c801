-- Runs since $1, with ids from $2, in parts of $3 seconds; the caller adds up the rows of a part. Counts created Runs, ended Runs
-- by status, and the start latency. A null part is the whole window; only its rows count the live and the booting Runs.
-- The latency leaves out Runs that waited while the queue was paused: it is about workers, not about operators.
--
-- Does not join the parts into one row each, because the planner overestimates the sets and then spends 0.5 s on JIT.
with pauses as materialized (
  select (details ->> 'pausedAt')::timestamptz as began, occurred_at as ended
  from audit_entries
  where id >= $2::text and action = 'queue.resumed' and details ? 'pausedAt'
)
select floor(extract(epoch from created_at - $1::timestamptz)::float8 / $3::integer)::integer as part,
       count(*)::integer as created,
       count(started_at) filter (where not was_paused)::integer as started,
       percentile_cont(array[0.5, 0.95, 0.99]) within group (
         order by 1000 * extract(epoch from started_at - created_at)::float8)
         filter (where not was_paused) as starts,
       0 as completed, 0 as failed, 0 as cancelled, 0 as expired, 0 as live, 0 as booting
from run_summaries
cross join lateral (
  select exists (select from pauses where created_at < ended and started_at > began) as was_paused
) as paused
where run_id >= $2::text and created_at >= $1
group by grouping sets ((1), ())
union all
select floor(extract(epoch from completed_at - $1::timestamptz)::float8 / $3::integer)::integer,
       0, 0, null,
       count(*) filter (where status = 'completed')::integer,
       count(*) filter (where status = 'failed')::integer,
       count(*) filter (where status = 'cancelled')::integer,
       count(*) filter (where status = 'expired')::integer,
       0, 0
from run_summaries
where completed_at >= $1
group by grouping sets ((1), ())
union all
select null, 0, 0, null, 0, 0, 0, 0,
       count(*)::integer,
       count(*) filter (where holder is not null and exists (
         select from run_summaries r where r.run_id = w.run_id and r.status = 'booting'))::integer
from run_work w
