-- The error codes of Runs that failed since $1, the most frequent first.
select code, count, last[1]::timestamptz as "lastAt", last[2] as "lastRunId"
from (
  select error ->> 'code' as code,
         count(*)::integer as count,
         max(array[to_char(completed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), run_id] collate "C") as last
  from run_summaries
  where error is not null and completed_at >= $1
  group by 1
) f
order by count desc, code
