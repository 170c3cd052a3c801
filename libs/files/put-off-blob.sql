-- Makes bytes that could not be deleted due again in $2 milliseconds.
update unclaimed_blobs set due_at = clock_timestamp() + $2::bigint * interval '1 millisecond' where blob_key = $1
