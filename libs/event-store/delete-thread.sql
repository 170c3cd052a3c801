-- Deletes the rows of a Thread ($2: its live Runs) after its stream (delete-stream.sql). Idempotency keys lose their answer but
-- keep their fingerprint and the id, so that a repeated create finds that its Thread is deleted. Leaves the blobs to the sweeper
-- and returns their keys.
with
summary as (delete from thread_summaries where thread_id = $1),
runs as (delete from run_summaries where thread_id = $1),
-- `limit` as in append.sql: every plan looks up by key.
work as (
  delete from run_work
  using (select unnest($2::text[]) as run_id limit cardinality($2::text[])) as live
  where run_work.run_id = live.run_id
),
answers as (update idempotency_keys set body = '' where thread_id = $1),
removed as (delete from files where thread_id = $1 returning id, blob_key),
-- The answers to uploads contain the names of files.
uploads as (
  update idempotency_keys set body = ''
  from removed
  where idempotency_keys.file_id = removed.id
),
unclaimed as (insert into unclaimed_blobs (blob_key, due_at) select blob_key, clock_timestamp() from removed)
select blob_key as key from removed
