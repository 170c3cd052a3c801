-- Fails instead of waiting long for a lock, because waiting blocks everybody else too. The migration can be repeated.
set local lock_timeout = '5s';

-- Model providers that fail now, one row for each provider and key (docs/adr/0041). The previous release ignores this table.
create table if not exists provider_circuits (
  -- A hash of the provider's address and of the reference to its key.
  id            text collate "C" primary key,
  -- The last failure: the code of the Run error, and what is known about it.
  code          text not null,
  cause         jsonb,
  opened_at     timestamptz not null default now(),
  -- The earliest time of the next call.
  probe_at      timestamptz not null,
  -- No other Run calls the provider until then, unless the last call fails before.
  probing_until timestamptz not null,
  -- The latest turn that a waiting Run was given.
  last_turn     timestamptz not null
);
