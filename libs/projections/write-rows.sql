-- Makes rows what their streams say: state rows ($1), summaries of Threads ($2) and of Runs ($3); $4 to $6 name the rows of
-- each that should not exist.
with
stream as (
  insert into streams (thread_id, version, last_event_id, last_occurred_at, state)
  select thread_id, version, last_event_id, last_occurred_at, state
  from jsonb_populate_recordset(null::streams, $1::jsonb)
  on conflict (thread_id) do update
  set version          = excluded.version,
      last_event_id    = excluded.last_event_id,
      last_occurred_at = excluded.last_occurred_at,
      state            = excluded.state
),
thread_summary as (
  insert into thread_summaries (thread_id, agent_id, organization_id, user_id, kind, owner_person_id,
                                owner_service_token_id, status, title, last_run_id, archived, created_at, updated_at,
                                client_external_ref, external_ref, external_ref_token_id)
  select thread_id, agent_id, organization_id, user_id, kind, owner_person_id,
         owner_service_token_id, status, title, last_run_id, archived, created_at, updated_at, client_external_ref,
         external_ref, external_ref_token_id
  from jsonb_populate_recordset(null::thread_summaries, $2::jsonb)
  on conflict (thread_id) do update
  set agent_id               = excluded.agent_id,
      organization_id        = excluded.organization_id,
      user_id                = excluded.user_id,
      kind                   = excluded.kind,
      owner_person_id        = excluded.owner_person_id,
      owner_service_token_id = excluded.owner_service_token_id,
      status                 = excluded.status,
      title                  = excluded.title,
      last_run_id            = excluded.last_run_id,
      archived               = excluded.archived,
      created_at             = excluded.created_at,
      updated_at             = excluded.updated_at,
      client_external_ref    = excluded.client_external_ref,
      external_ref           = excluded.external_ref,
      external_ref_token_id  = excluded.external_ref_token_id
),
run_summary as (
  insert into run_summaries (run_id, thread_id, status, trigger, created_at, started_at, completed_at, updated_at,
                             error, final_output)
  select run_id, thread_id, status, trigger, created_at, started_at, completed_at, updated_at, error, final_output
  from jsonb_populate_recordset(null::run_summaries, $3::jsonb)
  on conflict (run_id) do update
  set thread_id    = excluded.thread_id,
      status       = excluded.status,
      trigger      = excluded.trigger,
      created_at   = excluded.created_at,
      started_at   = excluded.started_at,
      completed_at = excluded.completed_at,
      updated_at   = excluded.updated_at,
      error        = excluded.error,
      final_output = excluded.final_output
),
stream_gone as (
  delete from streams where thread_id = any ($4::text[])
),
thread_summary_gone as (
  delete from thread_summaries where thread_id = any ($5::text[])
),
run_summary_gone as (
  delete from run_summaries where run_id = any ($6::text[])
)
select
