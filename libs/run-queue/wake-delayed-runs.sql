-- Delayed Runs whose time has come are ready, with their whole queue time before them. What comes after an earlier Run
-- has no due date and waits for the commit that ends that one. A locked row is being rewritten by an append: next time.
with due as materialized (
  select run_id from run_work
  where state = 'delayed' and due_at <= now()
  for update skip locked
)
update run_work
set state  = 'ready',
    since  = now(),
    due_at = now() + queue_ms * interval '1 millisecond'
from due
where run_work.run_id = due.run_id
