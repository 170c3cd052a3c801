-- Fails instead of waiting long for a lock, because waiting blocks everybody else too. The migration can be repeated.
set local lock_timeout = '5s';

-- The user whose browser token uploaded a draft. Null: a person or a service token did, or an earlier release.
alter table files add column owner_user_id text collate "C";
