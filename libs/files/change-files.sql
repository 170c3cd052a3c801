-- Changes files in the transaction of an append, after the append has locked the row of the Thread. Adds the files $2, whose
-- bytes are stored under the keys $9. Attaches the drafts $3 of the owner $5 or $6, its user $11 (null: any) and the
-- agent $4. Removes the files $7 if their bytes have the hash $10 (null: any bytes). The counts show whether every change was possible.
with
claimed_blobs as (
  -- `limit` as in append.sql: every plan looks up by key.
  delete from unclaimed_blobs
  using (select unnest($9::text[]) as blob_key limit cardinality($9::text[])) as put
  where unclaimed_blobs.blob_key = put.blob_key
  returning unclaimed_blobs.blob_key
),
added as (
  insert into files (id, thread_id, run_id, kind, name, mime_type, size, sha256, blob_key, folder_id, path)
  select f.id, $1, f.run_id, f.kind, f.name, f.mime_type, f.size, f.sha256, f.blob_key, f.folder_id, f.path
  from jsonb_populate_recordset(null::files, $2::jsonb) as f
  join claimed_blobs using (blob_key)
  returning kind, path
),
claimed as (
  update files set thread_id = $1
  where id = any ($3::text[]) and thread_id is null and agent_id = $4
    and (owner_person_id = $5 or owner_service_token_id = $6)
    and ($11::text is null or owner_user_id = $11)
    and created_at > now() - $8::bigint * interval '1 millisecond'
  returning id
),
removed as (
  delete from files
  where id = any ($7::text[]) and thread_id = $1 and ($10::text is null or sha256 = $10)
  returning id, kind, path, size, blob_key
),
-- Empties the stored answers of the uploads, because they have the names.
uploads as (
  update idempotency_keys set body = ''
  from (select unnest($7::text[]) as file_id limit cardinality($7::text[])) as gone
  where idempotency_keys.file_id = gone.file_id
),
unclaimed as (
  insert into unclaimed_blobs (blob_key, due_at) select blob_key, clock_timestamp() from removed
)
select (select count(*) from added)::integer   as added,
       (select count(*) from claimed)::integer as claimed,
       (select count(*) from removed)::integer as removed,
       (select coalesce(sum(size), 0) from removed)::bigint as "removedBytes",
       (held.attachments + (select count(*) from claimed)
         + (select count(*) from added where kind = 'attachment')
         - (select count(*) from removed where kind = 'attachment'))::integer as attachments,
       (held.artifacts + (select count(*) from added where kind = 'artifact' and path is null)
         - (select count(*) from removed where kind = 'artifact' and path is null))::integer as artifacts
from (
  select count(*) filter (where kind = 'attachment')                as attachments,
         count(*) filter (where kind = 'artifact' and path is null) as artifacts
  from files
  where thread_id = $1
) as held
