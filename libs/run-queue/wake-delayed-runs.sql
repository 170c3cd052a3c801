-- Makes delayed Runs ready that are due, with their whole queue time. A Run behind an earlier Run has no due date, and waits for
-- the commit that ends that Run. Skips rows that an append is changing. Returns how many Runs there were, and when the next
-- one is due, if within a second.
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
       -- Reads only one second of run_work_due, because all leases come after it.
       (select ceil(1000 * extract(epoch from due_at - clock_timestamp()))::float8 from run_work
        where state = 'delayed' and due_at > now() and due_at <= now() + interval '1 second'
        order by due_at
        limit 1) as "nextInMs"
