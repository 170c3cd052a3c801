-- Ends the pause and gives Runs that were ready during it the queue time back that passed meanwhile, in one commit.
-- A row that is locked is being rewritten by an append, which sets its own due date: waiting for it could deadlock.
with
pause as materialized (
  select queue, paused_at from queue_controls where queue = $1 and paused_at is not null for update
),
ended as (
  update queue_controls set paused_at = null from pause where queue_controls.queue = pause.queue
),
ready as materialized (
  select run_id from run_work
  where state = 'ready' and due_at is not null and exists (select from pause)
  for update skip locked
)
update run_work
set due_at = due_at + (clock_timestamp() - greatest(pause.paused_at, since))
from pause, ready
where run_work.run_id = ready.run_id
