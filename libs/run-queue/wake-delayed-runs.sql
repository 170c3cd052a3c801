-- Delayed Runs whose time has come are ready, with their whole queue time before them. What comes after an earlier Run
-- has no due date and waits for the commit that ends that one. A locked row is being rewritten by an append: next time.
-- Answers how many there were, and when the next one of the coming second is due.
with due as materialized (
  select run_id from run_work
  where state = 'delayed' and due_at <= now()
  for update skip locked
),
woken as (
  update run_work
  set state  = 'ready',
      since  = now(),
      due_at = now() + queue_ms * interval '1 millisecond'
  from due
  where run_work.run_id = due.run_id
  returning run_work.run_id
)
select (select count(*) from woken)::integer as woken,
       -- Of run_work_due only the second ahead is read: beyond it are all the leases.
       (select ceil(1000 * extract(epoch from due_at - clock_timestamp()))::float8 from run_work
        where state = 'delayed' and due_at > now() and due_at <= now() + interval '1 second'
        order by due_at
        limit 1) as "nextInMs"
