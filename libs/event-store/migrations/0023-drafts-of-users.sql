-- Fails instead of waiting long for a lock, because waiting blocks everybody else too. The migration can be repeated.
set local lock_timeout = '5s';

-- Counts the drafts of one user with browser tokens. Other drafts are not in it.
create index if not exists files_drafts_by_user on files (owner_service_token_id, owner_user_id)
  where thread_id is null and owner_user_id is not null;
