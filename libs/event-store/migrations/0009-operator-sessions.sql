-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- Operators who have signed in to the console (docs/adr/0016). The id is in their cookie and nowhere else: hash is its SHA-256.
-- token_hash is that of the token's secret as they gave it: a session is good for as long as that secret is.
create table operator_sessions (
  hash         bytea       primary key,
  token_id     text collate "C" not null references tokens on delete cascade,
  token_hash   bytea       not null,
  created_at   timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  expires_at   timestamptz not null
);

create index operator_sessions_by_token on operator_sessions (token_id);

-- Every process remembers sessions until the policy changes (docs/adr/0010). That one ends before its time is such a change;
-- that housekeeping removes what is over is none, and neither is a new one.
create constraint trigger policy_ended after delete on operator_sessions deferrable initially deferred for each row
  when (old.expires_at > clock_timestamp() and old.last_used_at > clock_timestamp() - interval '1 hour')
  execute function raise_policy_version();
create trigger policy_emptied after truncate on operator_sessions execute function raise_policy_version();
