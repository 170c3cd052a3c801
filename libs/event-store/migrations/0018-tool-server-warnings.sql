-- Fails instead of waiting long for a lock, because waiting blocks everybody else too. The migration can be repeated.
set local lock_timeout = '5s';

-- Why workers left out tools when they last read a tool server's list. No row if nothing was left out.
create table tool_server_warnings (
  agent_id    text collate "C" not null references agents on delete cascade,
  tool_server text        not null,
  warnings    text[]      not null,
  noted_at    timestamptz not null default now(),
  primary key (agent_id, tool_server)
);
