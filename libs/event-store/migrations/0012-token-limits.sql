-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- Limits that an operator has set for one token; null means the default of its kind. The trigger `policy_changed` compares whole rows, so
-- a change raises the policy version. The previous release does not read them.
alter table tokens
  add column requests_per_minute integer check (requests_per_minute > 0),
  add column max_streams         integer check (max_streams > 0);
