-- Whether the queue is paused ($1), unavailable ($2) or paused by a BullMQ tool ($3), the slots of all workers whose heartbeat is
-- younger than 10 s, whether there is a backlog, and whether any Run waits for a limit. Runs that waited for a limit do not
-- indicate a backlog.
select exists (select from queue_controls where queue = $1 and paused_at is not null) as paused,
       exists (select from queue_controls where queue = $2 and paused_at is not null) as unavailable,
       exists (select from queue_controls where queue = $3 and paused_at is not null) as "pausedByTool",
       (select coalesce(sum(slots), 0)::integer from workers where seen_at > now() - interval '10 seconds') as slots,
       exists (select from run_work where state = 'ready' and since < now() - interval '250 milliseconds'
               and limited_by is null) as crowded,
       exists (select from run_work where state = 'limited') as limited
