-- For the metrics of the whole installation: live Runs by state, the leased ones that are booting, the work items overdue by more
-- than 2 s, the age of the oldest ready Run, the live workers, and whether the queue is paused ($1, by a BullMQ tool $3) or
-- unavailable ($2). While it is, reaper and dispatcher leave ready and delayed rows alone, so these are not overdue. The oldest
-- ready Run excludes admitted Runs, which had their turn. Reads the whole table, because each append would have to write counters.
select count(*) filter (where state = 'ready')::integer as ready,
       count(*) filter (where state = 'leased')::integer as leased,
       count(*) filter (where state = 'waiting')::integer as waiting,
       count(*) filter (where state = 'delayed')::integer as delayed,
       count(*) filter (where state = 'limited')::integer as limited,
       (select count(*)::integer from run_work l join run_summaries r on r.run_id = l.run_id
        where l.holder is not null and r.status = 'booting') as booting,
       count(*) filter (where due_at < now() - interval '2 seconds'
                          and (state in ('leased', 'waiting') or not queue.is_held))::integer as due,
       coalesce(extract(epoch from clock_timestamp() - min(since) filter (where state = 'ready' and limited_by is null)), 0)::float8
         as "oldestReadySeconds",
       (select count(*)::integer from workers where seen_at > now() - interval '10 seconds') as workers,
       (select coalesce(sum(slots), 0)::integer from workers where seen_at > now() - interval '10 seconds') as slots,
       exists (select from queue_controls where queue in ($1, $3) and paused_at is not null) as paused,
       exists (select from queue_controls where queue = $2 and paused_at is not null) as unavailable
from run_work,
     (select exists (select from queue_controls where queue in ($1, $2, $3) and paused_at is not null) as is_held) as queue
