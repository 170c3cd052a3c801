-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- What workers left out when they last read the list of tools of an agent's tool server; no row where nothing was left out.
create table tool_server_warnings (
  agent_id    text collate "C" not null references agents on delete cascade,
  tool_server text        not null,
  warnings    text[]      not null,
  noted_at    timestamptz not null default now(),
  primary key (agent_id, tool_server)
);
