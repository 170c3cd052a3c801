-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- The caller's own reference for a Thread, where one was given (docs/api/compatibility.md).
alter table thread_summaries add column client_external_ref text;
