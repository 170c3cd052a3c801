-- Renews all leases of a worker in one statement, by the database's clock. A lease that is not returned is lost: it expired, or the
-- Run is no longer claimed under that attempt.
update run_work
set due_at = clock_timestamp() + $4::bigint * interval '1 millisecond'
-- `limit` as in append.sql: it keeps this a look-up by key, even if it was planned on a new table.
from (
  select * from unnest($2::text[], $3::integer[]) as one (run_id, attempt) limit cardinality($2::text[])
) as held
where run_work.run_id = held.run_id
  and run_work.attempt = held.attempt
  and run_work.holder = $1
  and run_work.state = 'leased'
  and run_work.due_at > clock_timestamp()
returning run_work.run_id as "runId", run_work.attempt
