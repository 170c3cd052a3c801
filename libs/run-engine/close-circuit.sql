-- Closes the circuit $1, and makes the Runs due that wait for it. Skips rows that an append is changing. Runs of earlier releases
-- name no circuit, and keep their delay.
with closed as materialized (
  delete from provider_circuits where id = $1 returning id
),
waiting as materialized (
  select run_work.run_id
  from closed
  cross join run_work
  join streams on streams.thread_id = run_work.thread_id
  where run_work.state = 'delayed' and run_work.due_at > now()
    and streams.state -> 'runs' -> 0 -> 'streak' ->> 'circuit' = closed.id
  for update of run_work skip locked
),
woken as (
  update run_work set due_at = now() from waiting where run_work.run_id = waiting.run_id returning run_work.run_id
)
select (select count(*) from closed)::integer as closed, (select count(*) from woken)::integer as woken
