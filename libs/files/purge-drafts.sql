-- Deletes at most $2 drafts that no Thread has and that are older than $1 milliseconds. The sweeper deletes their bytes.
with
old as (
  select id from files
  where thread_id is null and created_at <= now() - $1::bigint * interval '1 millisecond'
  order by created_at
  limit $2
  for update skip locked
),
gone as (
  delete from files using old where files.id = old.id and thread_id is null returning files.id, blob_key
),
uploads as (
  update idempotency_keys set body = '' from gone where idempotency_keys.file_id = gone.id
),
unclaimed as (
  insert into unclaimed_blobs (blob_key, due_at) select blob_key, clock_timestamp() from gone
)
select count(*)::integer as count from gone
