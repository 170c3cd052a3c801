-- Notes a key before its bytes are stored. The sweeper deletes them unless a file takes them within $2 milliseconds.
insert into unclaimed_blobs (blob_key, due_at) values ($1, clock_timestamp() + $2::bigint * interval '1 millisecond')
