-- Changes the folder $2 in an append of the Thread $1, which has the lock of the folder. New rows follow in change-files.sql.
-- $3: the changes, each with its path and the blob that it is based on. $4: the blobs that replace others.
--
-- replace: gives a file of this Thread new bytes. remove: deletes one. take_over, give_up: removes a file of another Thread
-- from the folder, but not from that Thread; with take_over, a new row gets its path. add: requires that the path is free,
-- and that no file is in the way of a folder.
with
change as materialized (
  select * from jsonb_to_recordset($3::jsonb) as c
    (path text, does text, "basedOn" text, run_id text, mime_type text, size bigint, sha256 text, blob_key text)
),
claimed_blobs as (
  -- `limit` as in append.sql: every plan looks up by key.
  delete from unclaimed_blobs
  using (select unnest($4::text[]) as blob_key limit cardinality($4::text[])) as put
  where unclaimed_blobs.blob_key = put.blob_key
  returning unclaimed_blobs.blob_key
),
replaced as (
  update files
  set run_id = change.run_id, mime_type = change.mime_type, size = change.size, sha256 = change.sha256,
      blob_key = change.blob_key, lost_at = null
  from change join claimed_blobs using (blob_key)
  where does = 'replace' and folder_id = $2 and files.path = change.path and files.path is not null
    and thread_id = $1 and files.blob_key = "basedOn"
  returning "basedOn" as blob_key
),
removed as (
  delete from files using change
  where does = 'remove' and folder_id = $2 and files.path = change.path and files.path is not null
    and thread_id = $1 and files.blob_key = "basedOn"
  returning files.blob_key
),
given_up as (
  update files set folder_id = null, path = null from change
  where does in ('give_up', 'take_over') and folder_id = $2 and files.path = change.path and files.path is not null
    and thread_id <> $1 and files.blob_key = "basedOn"
  returning 1
),
untouched as (
  select path, size from files
  where folder_id = $2 and path is not null and not exists (select from change where change.path = files.path)
),
-- The old sizes: all parts see the files from before the statement.
freed as (
  select size from files
  where folder_id = $2 and path is not null and thread_id = $1
    and exists (select from change where change.path = files.path and "basedOn" = files.blob_key and does in ('replace', 'remove'))
),
added as (
  select from change
  where does = 'add'
    and not exists (select from files where folder_id = $2 and files.path = change.path and files.path is not null)
    -- A path is a file or a folder, never both.
    and not exists (
      select from untouched u where starts_with(u.path, change.path || '/') or starts_with(change.path, u.path || '/')
    )
),
unclaimed as (
  -- A reader that has just looked up the replaced bytes has a minute to open them.
  insert into unclaimed_blobs (blob_key, due_at)
  select blob_key, clock_timestamp() + interval '1 minute' from replaced
  union all
  select blob_key, clock_timestamp() from removed
),
written as (
  select size from change where does in ('add', 'replace', 'take_over')
)
select (select count(*) from replaced)::integer + (select count(*) from removed)::integer
         + (select count(*) from given_up)::integer + (select count(*) from added)::integer as done,
       (select count(*) from untouched)::integer + (select count(*) from written)::integer as files,
       (select coalesce(sum(size), 0) from (select size from untouched union all select size from written) s)::bigint as bytes,
       (select coalesce(sum(size), 0) from freed)::bigint as "freedBytes"
