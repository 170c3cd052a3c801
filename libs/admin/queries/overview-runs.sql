-- Runs since $1, with ids from $2, in parts of $3 seconds; the caller adds up the rows of a part. Counts created Runs, ended Runs
-- by status, and the start latency. A null part is the whole window; only its rows count the live and the booting Runs.
--
-- Does not join the parts into one row each, because the planner overestimates the sets and then spends 0.5 s on JIT.
select floor(extract(epoch from created_at - $1::timestamptz)::float8 / $3::integer)::integer as part,
       count(*)::integer          as created,
       count(started_at)::integer as started,
       percentile_cont(array[0.5, 0.95, 0.99]) within group (
         order by 1000 * extract(epoch from started_at - created_at)::float8) as starts,
       0 as completed, 0 as failed, 0 as cancelled, 0 as expired, 0 as live, 0 as booting
from run_summaries
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
