-- Appends to one stream, with all derived rows, atomically and in one round trip (docs/adr/0005).
--
-- Each data-modifying part depends on the one before it through `returning`. If the expected version, the fence, the due date
-- or the idempotency lock does not hold, `stream` is empty and nothing is written. The snapshot can miss two conflicts: a key
-- stored between it and our lock, and a second `thread.created`. They violate a primary key, which aborts the statement.
with
-- The inputs by name. Not materialized, so that the planner sees parameters and uses the keys.
input as not materialized (
  select $1::text as thread_id,
         $2::integer as version_before,
         $3::integer as version,
         $4::text as last_event_id,
         $5::timestamptz as occurred_at,
         $6::jsonb as state,
         $7::jsonb as events,
         $8::text as proof_run_id,
         $9::integer as proof_attempt,
         $10::jsonb as thread_summary,
         $11::jsonb as run_summaries,
         $12::jsonb as work,
         $13::text[] as work_gone,
         $14::boolean as is_due,
         $15::text as token_id,
         $16::text as key,
         $17::text as fingerprint,
         $18::smallint as status,
         $19::text as body,
         $20::text as trace_parent,
         -- In a group: the ids of all work items that it writes. Null if the append is sent alone.
         $21::text[] as work_in_group
),
lock as materialized (
  -- The lock ends with this transaction, so "in progress" cannot outlive the work (docs/spec/decisions.md#idempotency).
  select case when input.key is null then true
              else pg_try_advisory_xact_lock(hashtextextended(input.token_id || ' ' || input.key, 0)) end as held
  from input
),
seen as materialized (
  select exists (select from idempotency_keys k where k.token_id = input.token_id and k.key = input.key) as key_seen
  from input
),
due_stream as materialized (
  -- Locks the stream before the work item, as every other append does. The reverse order would deadlock with the append of a
  -- worker that is late but alive.
  select s.thread_id from input, streams s
  where input.is_due and s.thread_id = input.thread_id and s.version = input.version_before
  for update of s
),
due as materialized (
  -- For the reaper: checks that the Run is still due. `for update` waits for a concurrent renewal and then checks again.
  select run_id from input, due_stream, run_work
  where run_id = input.proof_run_id and attempt = input.proof_attempt
    and (due_at <= clock_timestamp() or work_until <= clock_timestamp())
  for update of run_work
),
-- In a group, what another transaction has locked counts as a conflict, so that the statement does not wait. Groups hold the
-- locks of all members, in another order than statements that lock many work items.
unlocked_stream as materialized (
  select s.thread_id from input, streams s
  where input.work_in_group is not null and s.thread_id = input.thread_id and s.version = input.version_before
  for update of s skip locked
),
own_work as materialized (
  select unnest(work_in_group) as run_id from input limit (select cardinality(work_in_group) from input) -- as in `work_gone`
),
unlocked_work as materialized (
  select w.run_id from unlocked_stream, own_work, run_work w where w.run_id = own_work.run_id for update of w skip locked
),
waits as materialized (
  select input.work_in_group is not null and input.version_before > 0
         and (not exists (select from unlocked_stream)
              or (select count(*) from own_work, run_work w where w.run_id = own_work.run_id)
                 > (select count(*) from unlocked_work)) as "any"
  from input
),
gate as materialized (
  select from input, lock, seen, waits
  where lock.held and not seen.key_seen and (not input.is_due or exists (select from due)) and not waits."any"
),
created as (
  insert into streams (thread_id, version, last_event_id, last_occurred_at, state)
  select input.thread_id, input.version, input.last_event_id, input.occurred_at, input.state
  from input, gate where input.version_before = 0
  returning thread_id
),
advanced as (
  update streams s
  set version          = input.version,
      last_event_id    = input.last_event_id,
      last_occurred_at = input.occurred_at,
      state            = coalesce(input.state, s.state)
  from input, gate
  where s.thread_id = input.thread_id and s.version = input.version_before and input.version_before > 0
    and (input.proof_run_id is null or input.is_due
         or (s.state #>> '{runs,0,id}' = input.proof_run_id
             and (s.state #>> '{runs,0,attempt}')::integer = input.proof_attempt))
  returning s.thread_id
),
stream as materialized (
  select thread_id from created union all select thread_id from advanced
),
appended as (
  insert into events (thread_id, version, id, type, schema_version, data, run_id, attempt, public, occurred_at)
  select input.thread_id, e.version, e.id, e.type, e.schema_version, e.data, e.run_id, e.attempt, e.public, input.occurred_at
  from input, stream, jsonb_to_recordset(input.events) as e
    (version integer, id text, type text, schema_version smallint, data jsonb, run_id text, attempt integer, public boolean)
),
thread_summary as (
  insert into thread_summaries (:thread_columns)
  select :t.thread_columns
  from input, stream, jsonb_populate_recordset(null::thread_summaries, input.thread_summary) as t
  on conflict (thread_id) do update set :thread_updates
),
run_summary as (
  insert into run_summaries (:run_columns)
  select :r.run_columns
  from input, stream, jsonb_populate_recordset(null::run_summaries, input.run_summaries) as r
  on conflict (run_id) do update set :run_updates
),
work as (
  insert into run_work (run_id, thread_id, organization_id, agent_id, state, dispatch, attempt, holder,
                        due_at, since, queue_ms, work_left, work_until, trace_parent)
  select w."runId", input.thread_id, w."organizationId", w."agentId", w.state, w.dispatch, w.attempt, w.holder,
         clock_timestamp() + w."dueInMs" * interval '1 millisecond', clock_timestamp(), w."queueMs",
         w."workMs" * interval '1 millisecond',
         case when w.state = 'leased' then clock_timestamp() + w."workMs" * interval '1 millisecond' end,
         input.trace_parent
  from input, stream, jsonb_to_recordset(input.work) as w
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
  -- `limit` keeps all rows, but makes the planner expect one and use the key, even if it planned on an empty table. With
  -- `run_id = any (work_gone)` each append scanned the table until the next ANALYZE.
  delete from run_work
  using stream, (select unnest(work_gone) as run_id from input limit (select cardinality(work_gone) from input)) as gone
  where run_work.run_id = gone.run_id
),
key as (
  insert into idempotency_keys (token_id, key, fingerprint, thread_id, status, body)
  select input.token_id, input.key, input.fingerprint, input.thread_id, input.status, input.body
  from input, stream where input.key is not null
)
select lock.held as "lockHeld", seen.key_seen as "keySeen", exists (select from stream) as appended from lock, seen
