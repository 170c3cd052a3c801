-- Deletes a draft that no Thread has. The sweeper deletes its bytes.
with
gone as (
  delete from files where id = $1 and thread_id is null returning id, blob_key
),
uploads as (
  update idempotency_keys set body = '' from gone where idempotency_keys.file_id = gone.id
),
unclaimed as (
  insert into unclaimed_blobs (blob_key, due_at) select blob_key, clock_timestamp() from gone
)
select blob_key as key from gone
