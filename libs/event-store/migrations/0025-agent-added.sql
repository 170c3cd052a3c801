-- Fails instead of waiting long for a lock, because waiting blocks everybody else too. The migration can be repeated.
set local lock_timeout = '5s';

-- When a service token got the Agent; null: at its creation, or from an earlier release.
-- The previous release ignores this column.
alter table token_agents add column if not exists added_at timestamptz;
