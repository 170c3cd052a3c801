-- The files after $1 in the order of their ids, at most $2 of them.
select id, thread_id as "threadId", size, sha256, blob_key, lost_at from files where id > $1 order by id limit $2
