-- Appends to one stream, all or nothing, in one round trip, and writes everything that follows from it (docs/adr/0005).
--
-- Each data-modifying part hangs on the one before it through `returning`: where the expected version, the fence, what
-- is due or the idempotency lock says no, `stream` is empty and nothing at all is written. What would be found out too late
-- for that (a key stored between our snapshot and our lock, a second `thread.created`) violates a primary key and aborts
-- the statement.
with
lock as materialized (
  -- Dies with this transaction: "in progress" can never outlive the work (docs/spec/decisions.md#idempotency).
  select case when $16::text is null then true
              else pg_try_advisory_xact_lock(hashtextextended($15::text || ' ' || $16, 0)) end as held
),
seen as materialized (
  select exists (select from idempotency_keys where token_id = $15 and key = $16) as key_seen
),
due_stream as materialized (
  -- The stream's row before the work row, as every other append locks them: the other way round is a deadlock with the
  -- append of a worker that is late but alive.
  select thread_id from streams where $14::boolean and thread_id = $1 and version = $2::integer for update
),
due as materialized (
  -- For the reaper: what it saw due must still be. `for update` waits for a renewal under way and then looks again.
  select run_id from due_stream, run_work
  where run_id = $8 and attempt = $9 and (due_at <= clock_timestamp() or work_until <= clock_timestamp())
  for update of run_work
),
gate as materialized (
  select from lock, seen
  where lock.held and not seen.key_seen and (not $14::boolean or exists (select from due))
),
created as (
  insert into streams (thread_id, version, last_event_id, last_occurred_at, state)
  select $1, $3, $4, $5::timestamptz, $6::jsonb from gate where $2::integer = 0
  returning thread_id
),
advanced as (
  update streams
  set version          = $3,
      last_event_id    = $4,
      last_occurred_at = $5::timestamptz,
      state            = coalesce($6::jsonb, state)
  from gate
  where thread_id = $1 and version = $2::integer and $2::integer > 0
    and ($8::text is null or $14::boolean
         or (state #>> '{runs,0,id}' = $8 and (state #>> '{runs,0,attempt}')::integer = $9))
  returning thread_id
),
stream as materialized (
  select thread_id from created union all select thread_id from advanced
),
appended as (
  insert into events (thread_id, version, id, type, schema_version, data, run_id, attempt, public, occurred_at)
  select $1, e.version, e.id, e.type, e.schema_version, e.data, e.run_id, e.attempt, e.public, $5::timestamptz
  from stream, jsonb_to_recordset($7::jsonb) as e
    (version integer, id text, type text, schema_version smallint, data jsonb, run_id text, attempt integer, public boolean)
),
thread_summary as (
  insert into thread_summaries (thread_id, agent_id, organization_id, user_id, kind, owner_person_id,
                                owner_service_token_id, status, title, last_run_id, archived, created_at, updated_at,
                                client_external_ref, external_ref, external_ref_token_id)
  select t.thread_id, t.agent_id, t.organization_id, t.user_id, t.kind, t.owner_person_id,
         t.owner_service_token_id, t.status, t.title, t.last_run_id, t.archived, t.created_at, t.updated_at,
         t.client_external_ref, t.external_ref, t.external_ref_token_id
  from stream, jsonb_populate_recordset(null::thread_summaries, $10::jsonb) as t
  on conflict (thread_id) do update
  set status      = excluded.status,
      title       = excluded.title,
      last_run_id = excluded.last_run_id,
      archived    = excluded.archived,
      updated_at  = excluded.updated_at
),
run_summary as (
  insert into run_summaries (run_id, thread_id, status, trigger, created_at, started_at, completed_at, updated_at,
                             error, final_output)
  select r.run_id, r.thread_id, r.status, r.trigger, r.created_at, r.started_at, r.completed_at, r.updated_at,
         r.error, r.final_output
  from stream, jsonb_populate_recordset(null::run_summaries, $11::jsonb) as r
  on conflict (run_id) do update
  set status       = excluded.status,
      started_at   = excluded.started_at,
      completed_at = excluded.completed_at,
      updated_at   = excluded.updated_at,
      error        = excluded.error,
      final_output = excluded.final_output
),
work as (
  insert into run_work (run_id, thread_id, organization_id, agent_id, state, dispatch, attempt, holder,
                        due_at, since, queue_ms, work_left, work_until, trace_parent)
  select w."runId", $1, w."organizationId", w."agentId", w.state, w.dispatch, w.attempt, w.holder,
         clock_timestamp() + w."dueInMs" * interval '1 millisecond', clock_timestamp(), w."queueMs",
         w."workMs" * interval '1 millisecond',
         case when w.state = 'leased' then clock_timestamp() + w."workMs" * interval '1 millisecond' end, $20
  from stream, jsonb_to_recordset($12::jsonb) as w
    ("runId" text, "organizationId" text, "agentId" text, state text, dispatch integer, attempt integer, holder text,
     "dueInMs" bigint, "queueMs" bigint, "workMs" bigint)
  on conflict (run_id) do update
  set state      = excluded.state,
      limited_by = null,
      queue_left = null,
      dispatch   = excluded.dispatch,
      attempt    = excluded.attempt,
      holder     = excluded.holder,
      due_at     = excluded.due_at,
      since      = excluded.since,
      work_left  = coalesce(run_work.work_until - clock_timestamp(), run_work.work_left),
      work_until = case when excluded.state = 'leased' then
                     coalesce(run_work.work_until, clock_timestamp() + run_work.work_left) end,
      trace_link = case when excluded.state = 'leased' then run_work.trace_link else excluded.trace_parent end
),
work_gone as (
  -- `limit` takes all of them; it makes the planner expect one, and so use the key, also where it planned when the table
  -- was empty. With `run_id = any ($13)` each append scanned the table until the next ANALYZE.
  delete from run_work
  using stream, (select unnest($13::text[]) as run_id limit cardinality($13::text[])) as gone
  where run_work.run_id = gone.run_id
),
key as (
  insert into idempotency_keys (token_id, key, fingerprint, thread_id, status, body)
  select $15, $16, $17::text, $1, $18::smallint, $19::text from stream where $16::text is not null
)
select lock.held as "lockHeld", seen.key_seen as "keySeen", exists (select from stream) as appended from lock, seen
