-- Fails instead of waiting long for a lock, because waiting blocks everybody else too. The migration can be repeated.
set local lock_timeout = '5s';

-- The service token of each organization that creates the chat tokens of operators. Applications can have tokens with its name.
-- The previous release ignores this table.
create table if not exists chat_tokens (
  organization_id text collate "C" primary key references organizations,
  token_id        text collate "C" not null references tokens
);
