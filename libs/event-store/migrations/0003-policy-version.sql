-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- One row, whose number is raised by every commit that changes who may do what: each process looks at it once a second, and
-- forgets what it remembers of tokens and agents when it has moved (docs/adr/0010). A row and not a sequence: a sequence
-- moves at once and for everybody, so that one who sees the new number may still read the old state and keep it for good.
-- The row's new number is seen exactly when the change is.
create table policy_version (
  only_row  boolean primary key default true check (only_row),
  version   bigint  not null,
  -- The transaction that has, so that one which changes a thousand rows does it once.
  raised_by xid8
) with (fillfactor = 10);

insert into policy_version (version) values (1);

-- With its owner's rights and search path: whoever sends SQL of their own may have others.
create function raise_policy_version() returns trigger language plpgsql security definer set search_path from current as $$
begin
  update policy_version
  set version = version + 1, raised_by = pg_current_xact_id()
  where raised_by is distinct from pg_current_xact_id();
  return null;
end $$;

-- By triggers, so that the previous release and an operator's own SQL are seen too. Deferred to the commit: the one row is
-- locked last and for a moment, so two transactions that change agents and tokens in whatever order do not wait for each
-- other in a circle. That a token is used changes nothing for anybody; a new token or agent neither, for that there is none
-- is not remembered (the list of agents that a new service token brings raises the number all the same).
create constraint trigger policy_changed after update on tokens deferrable initially deferred for each row
  when (to_jsonb(old) - 'last_used_at' is distinct from to_jsonb(new) - 'last_used_at')
  execute function raise_policy_version();
create constraint trigger policy_ended after delete on tokens deferrable initially deferred for each row
  execute function raise_policy_version();

create constraint trigger policy_changed after update on agents deferrable initially deferred for each row
  when (old.* is distinct from new.*)
  execute function raise_policy_version();
create constraint trigger policy_ended after delete on agents deferrable initially deferred for each row
  execute function raise_policy_version();

create constraint trigger policy_changed after insert or update or delete on memberships deferrable initially deferred
  for each row execute function raise_policy_version();
create constraint trigger policy_changed after insert or update or delete on agent_people deferrable initially deferred
  for each row execute function raise_policy_version();
create constraint trigger policy_changed after insert or update or delete on token_agents deferrable initially deferred
  for each row execute function raise_policy_version();

-- Emptying a table deletes no rows, and cannot be deferred.
create trigger policy_emptied after truncate on tokens execute function raise_policy_version();
create trigger policy_emptied after truncate on agents execute function raise_policy_version();
create trigger policy_emptied after truncate on memberships execute function raise_policy_version();
create trigger policy_emptied after truncate on agent_people execute function raise_policy_version();
create trigger policy_emptied after truncate on token_agents execute function raise_policy_version();
