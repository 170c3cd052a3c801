-- Deletes at most $2 idempotency keys that are older than $1 milliseconds. Concurrent purges never wait for each other.
with old as (
  select token_id, key from idempotency_keys
  where created_at <= now() - $1::bigint * interval '1 millisecond'
  order by created_at
  limit $2
  for update skip locked
),
gone as (
  delete from idempotency_keys using old
  where idempotency_keys.token_id = old.token_id and idempotency_keys.key = old.key
  returning 1
)
select count(*)::integer as count from gone
