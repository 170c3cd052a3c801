-- Bytes are about to be put under this key: unless a file takes them within $2 milliseconds, they are swept.
insert into unclaimed_blobs (blob_key, due_at) values ($1, clock_timestamp() + $2::bigint * interval '1 millisecond')
