-- Writes folded rows: state rows ($1), summaries of Threads ($2) and of Runs ($3). Deletes the rows of each that should not
-- exist ($4 to $6).
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
  insert into thread_summaries (:thread_columns)
  select :thread_columns
  from jsonb_populate_recordset(null::thread_summaries, $2::jsonb)
  on conflict (thread_id) do update set :thread_updates
),
run_summary as (
  insert into run_summaries (:run_columns)
  select :run_columns
  from jsonb_populate_recordset(null::run_summaries, $3::jsonb)
  on conflict (run_id) do update set :run_updates
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
