-- Returns the Threads with another version than the known one. A null version means deleted. One query serves all open streams
-- of a process, and unchanged Threads have no row. `offset 0` makes the planner look up Threads by key. It planned a join on a
-- small table as a scan of all Threads.
select known.thread_id as "threadId", s.version
from unnest($1::text[], $2::integer[]) as known (thread_id, version)
left join lateral (select version from streams where thread_id = known.thread_id offset 0) as s on true
where s.version is distinct from known.version
