-- Which of the Threads have moved past the version that is known of them; a null version: deleted. One query for all open
-- streams of a process, and rows only for what is news. `offset 0` keeps it a look-up by key: as a join it was planned, on
-- a young table, as a scan of all Threads there are.
select known.thread_id as "threadId", s.version
from unnest($1::text[], $2::integer[]) as known (thread_id, version)
left join lateral (select version from streams where thread_id = known.thread_id offset 0) as s on true
where s.version is null or s.version > known.version
