-- Ends a pause or an outage ($1), and gives Runs that were ready during it the elapsed queue time back, in one commit. If others
-- ($2) continue, their ends give back the time since their own beginnings, so no time is given back twice. Skips locked rows: an
-- append is changing them and sets the due date, and waiting for it could deadlock. Returns whether there was one.
with
ending as materialized (
  select queue, paused_at from queue_controls where queue = $1 and paused_at is not null for update
),
ended as (
  update queue_controls set paused_at = null from ending where queue_controls.queue = ending.queue
),
held as materialized (
  select ending.paused_at as since,
         least(clock_timestamp(), (select min(paused_at) from queue_controls where queue = any ($2::text[]))) as until
  from ending
),
ready as materialized (
  select run_id from run_work
  where state = 'ready' and due_at is not null and exists (select from ending)
  for update skip locked
),
given_back as (
  update run_work
  set due_at = due_at + greatest(interval '0', held.until - greatest(held.since, run_work.since))
  from held, ready
  where run_work.run_id = ready.run_id
)
select exists (select from ending) as ended
