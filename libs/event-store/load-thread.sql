-- Reads the state row of a Thread, and the summaries that a command may change. The cost does not grow with the Thread.
-- `offset 0` makes the planner look up Runs by key. It planned a join on a small table as a scan of all Runs.
select s.version,
       s.last_event_id    as "lastEventId",
       s.last_occurred_at as "lastOccurredAt",
       s.state,
       row_to_json(t)     as thread,
       (select json_agg(r)
        from jsonb_array_elements(s.state -> 'runs') as run,
             lateral (select * from run_summaries where run_id = run ->> 'id' offset 0) as r) as runs
from streams s
left join thread_summaries t on t.thread_id = s.thread_id
where s.thread_id = $1
