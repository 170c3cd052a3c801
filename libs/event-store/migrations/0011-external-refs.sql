-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- The caller's unique reference, and the token that gave it. The previous release writes neither. `client_external_ref` stays as a
-- separate column, because its values were never unique. 0013 builds the indices: this lock blocks reads too, so it must be short.
alter table thread_summaries
  add column if not exists external_ref          text,
  add column if not exists external_ref_token_id text collate "C";
