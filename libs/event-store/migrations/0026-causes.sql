-- Fails instead of waiting long for a lock, because waiting blocks everybody else too. The migration can be repeated.
set local lock_timeout = '5s';

-- Why the last failed attempt of a Run failed, for operators. The previous release ignores this column.
alter table run_summaries add column if not exists cause jsonb;
