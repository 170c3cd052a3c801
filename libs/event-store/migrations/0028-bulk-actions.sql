-- Fails instead of waiting long for a lock, because waiting blocks everybody else too. The migration can be repeated.
set local lock_timeout = '5s';

-- The fields of a stored cause that are equal in Runs with the same cause. The worker's id is not among them.
create or replace function cause_group(cause jsonb) returns jsonb language sql immutable parallel safe as $$
  select cause - case when cause ->> 'source' = 'worker' then '{attempt,message,requestId,waitedMs,step,name}'::text[]
                      else '{attempt,message,requestId,waitedMs,step}'::text[] end
$$;

-- Finds Runs by their cause, and the different causes. Only Runs with a failed attempt are in it.
create index if not exists run_summaries_by_cause on run_summaries (cause_group(cause), run_id) where cause is not null;

-- Changes of many Runs that an operator asked for (docs/adr/0043). The previous release ignores both tables.
create table if not exists bulk_actions (
  id           text collate "C" primary key,
  action       text not null check (action in ('cancel', 'retry')),
  state        text not null check (state in ('planned', 'running', 'done', 'stopped')),
  -- The filters that chose the Runs, as the operator gave them.
  filter       jsonb not null,
  -- What the chosen Runs are of: the number of organizations and Agents, the first and the last time of creation.
  touches      jsonb not null,
  planned_at   timestamptz not null default now(),
  started_at   timestamptz,
  ended_at     timestamptz,
  -- The operator who started it.
  actor_kind   text,
  actor_id     text,
  actor_name   text,
  -- Until then, only the process that set it works on it.
  leased_until timestamptz
);
create index if not exists bulk_actions_running on bulk_actions (id) where state = 'running';

-- The Runs of a bulk action. `outcome` is null until the Run is changed, or a reason is found why it is not.
create table if not exists bulk_action_runs (
  action_id  text collate "C" not null references bulk_actions on delete cascade,
  run_id     text collate "C" not null,
  thread_id  text collate "C" not null,
  outcome    text check (outcome in ('done', 'not_done')),
  reason     text,
  new_run_id text collate "C",
  primary key (action_id, run_id)
);
create index if not exists bulk_action_runs_left on bulk_action_runs (action_id, run_id) where outcome is null;
