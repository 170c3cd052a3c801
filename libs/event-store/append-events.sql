-- Appends events that change nothing but the stream, as most appends do. Checks version and fence as append.sql does. Leaves
-- out the seven parts that would write nothing, which gives 1.1 to 1.4 times the throughput (docs/adr/0005).
with
-- As in append.sql: in a group, a locked Thread counts as a conflict, so that the statement does not wait.
unlocked as materialized (
  select thread_id from streams
  where $9::boolean and thread_id = $1 and version = $2::integer
  for update skip locked
),
stream as (
  update streams
  set version          = $3,
      last_event_id    = $4,
      last_occurred_at = $5::timestamptz
  where thread_id = $1 and version = $2::integer
    and ($7::text is null or (state #>> '{runs,0,id}' = $7 and (state #>> '{runs,0,attempt}')::integer = $8))
    and (not $9 or exists (select from unlocked))
  returning thread_id
),
appended as (
  insert into events (thread_id, version, id, type, schema_version, data, run_id, attempt, public, occurred_at)
  select $1, e.version, e.id, e.type, e.schema_version, e.data, e.run_id, e.attempt, e.public, $5::timestamptz
  from stream, jsonb_to_recordset($6::jsonb) as e
    (version integer, id text, type text, schema_version smallint, data jsonb, run_id text, attempt integer, public boolean)
)
select exists (select from stream) as appended
