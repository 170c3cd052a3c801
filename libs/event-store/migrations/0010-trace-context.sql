-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- Where the trace of a Run goes on (W3C `traceparent`), and what made it wait or ready last, which may be in another trace. Both are
-- for operators alone: nothing is decided by them. Null where nothing is traced, and where the previous release wrote the row.
alter table run_work
  add column trace_parent text,
  add column trace_link   text;
