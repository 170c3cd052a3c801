-- At most $2 files after the id $1, in the order of ids.
select id, thread_id as "threadId", size, sha256, blob_key, lost_at from files where id > $1 order by id limit $2
