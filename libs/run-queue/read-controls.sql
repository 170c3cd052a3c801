-- Whether the queue is paused ($1) or away ($2), the slots of all workers whose heartbeat is younger than 10 s, and whether
-- there is a backlog.
select exists (select from queue_controls where queue = $1 and paused_at is not null) as paused,
       exists (select from queue_controls where queue = $2 and paused_at is not null) as away,
       (select coalesce(sum(slots), 0)::integer from workers where seen_at > now() - interval '10 seconds') as slots,
       exists (select from run_work where state = 'ready' and since < now() - interval '250 milliseconds') as crowded
