-- Stores a draft for stored bytes, with its answer under an idempotency key if one is given. All or nothing, as in append.sql.
-- $11: the most drafts of the owner. A draft of a user with browser tokens ($17) counts only for that user, so that no user can
-- keep others from uploading.
with
lock as materialized (
  select case when $13::text is null then true
              else pg_try_advisory_xact_lock(hashtextextended($12::text || ' ' || $13, 0)) end as held
),
seen as materialized (
  select exists (select from idempotency_keys where token_id = $12 and key = $13) as key_seen
),
drafts as materialized (
  select least((select count(*) from (select from files where thread_id is null and owner_person_id = $9 limit $11) p)
             + (select count(*) from (select from files where thread_id is null and owner_service_token_id = $10
                                      and owner_user_id is null and $17::text is null limit $11) s)
             + (select count(*) from (select from files where thread_id is null and owner_service_token_id = $10
                                      and owner_user_id = $17 limit $11) u),
               $11::integer) as count
),
gate as materialized (
  select from lock, seen, drafts where held and not key_seen and drafts.count < $11::integer
),
claimed_blob as (
  delete from unclaimed_blobs using gate where blob_key = $7 returning blob_key
),
draft as (
  insert into files (id, kind, name, mime_type, size, sha256, blob_key, agent_id, owner_person_id, owner_service_token_id,
                     owner_user_id, created_at)
  select $1, 'attachment', $2, $3, $4::bigint, $5, $7, $8, $9, $10, $17, $6::timestamptz from claimed_blob
  returning id
),
key as (
  insert into idempotency_keys (token_id, key, fingerprint, file_id, status, body)
  select $12, $13, $14::text, $1, $15::smallint, $16::text from draft where $13::text is not null
)
select lock.held as "lockHeld", seen.key_seen as "keySeen", drafts.count < $11::integer as "hasRoom",
       exists (select from draft) as stored
from lock, seen, drafts
