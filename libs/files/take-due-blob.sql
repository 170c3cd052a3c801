-- Takes the note of the bytes that are due longest. Two sweepers never take the same note.
delete from unclaimed_blobs
where blob_key in (
  select blob_key from unclaimed_blobs where due_at <= clock_timestamp() order by due_at limit 1 for update skip locked
)
returning blob_key as key
