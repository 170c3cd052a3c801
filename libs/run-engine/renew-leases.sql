-- Renews all leases of a worker at once, by the database's clock. One that is not answered is lost: it ran out, or the
-- Run is no longer claimed under that attempt.
update run_work
set due_at = clock_timestamp() + $4::bigint * interval '1 millisecond'
-- `limit` as in append.sql: a look-up by key, also where it was planned on a young table.
from (
  select * from unnest($2::text[], $3::integer[]) as one (run_id, attempt) limit cardinality($2::text[])
) as held
where run_work.run_id = held.run_id
  and run_work.attempt = held.attempt
  and run_work.holder = $1
  and run_work.state = 'leased'
  and run_work.due_at > clock_timestamp()
returning run_work.run_id as "runId", run_work.attempt
