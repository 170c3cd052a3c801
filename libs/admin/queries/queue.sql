-- A snapshot of the queue ($1): whether it is unavailable ($2) or paused by a BullMQ tool ($3), live Runs by state, live workers.
select (select min(paused_at) from queue_controls where queue in ($1, $3)) as "pausedAt",
       (select coalesce(json_agg(case queue when $1 then 'spool' else 'bullmq' end order by paused_at), '[]')
        from queue_controls where queue in ($1, $3) and paused_at is not null) as "pausedBy",
       (select paused_at from queue_controls where queue = $2) as "awaySince",
       json_build_object('ready', count(*) filter (where state = 'ready'), 'leased', count(*) filter (where state = 'leased'),
         'waiting', count(*) filter (where state = 'waiting'), 'delayed', count(*) filter (where state = 'delayed'),
         'limited', count(*) filter (where state = 'limited')) as runs,
       round(1000 * extract(epoch from clock_timestamp() - min(since) filter (where state = 'ready' and limited_by is null)))::float8 as "oldestReadyMs",
       (select coalesce(json_agg(json_build_object('holder', w.holder, 'slots', w.slots, 'seenAt', w.seen_at,
                 'leased', (select count(*) from run_work l where l.holder = w.holder and l.state = 'leased'))
               order by w.holder), '[]')
        from workers w where w.seen_at > now() - interval '10 seconds') as workers
from run_work
