-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- A token that is rotated keeps its id, and with it all that it owns; its old secret works for a while where that was wanted.
alter table tokens
  add column rotated_at     timestamptz,
  add column old_hash       bytea,
  add column old_hash_until timestamptz;

create unique index tokens_by_old_hash on tokens (old_hash) where old_hash is not null;
create index tokens_by_person on tokens (person_id) where person_id is not null;

-- Null until all Threads of a deleted agent are ended, and no pod can still know the agent as it was.
alter table agents add column threads_ended_at timestamptz;

create index agents_by_name on agents (organization_id, name) where deleted_at is null;
create index agents_to_end on agents (deleted_at) where deleted_at is not null and threads_ended_at is null;
create index memberships_by_person on memberships (person_id);
create index agent_people_by_person on agent_people (person_id);
create index token_agents_by_agent on token_agents (agent_id);

-- Who has changed what, and when: written by the transaction that makes the change.
create table audit_entries (
  id              text collate "C" primary key,
  occurred_at     timestamptz not null default clock_timestamp(),
  actor_kind      text        not null check (actor_kind in ('operator', 'local')),
  actor_id        text        not null,
  actor_name      text        not null,
  action          text        not null,
  target_id       text,
  organization_id text collate "C",
  details         jsonb       not null default '{}'
);

create index audit_entries_by_target on audit_entries (target_id, id) where target_id is not null;
create index audit_entries_by_actor on audit_entries (actor_id, id);

-- By whatever way: an entry that can be changed proves nothing. (Who owns the table can still drop the trigger.)
create function refuse_audit_change() returns trigger language plpgsql as $$
begin
  raise exception 'the audit log is append-only' using errcode = 'insufficient_privilege';
end
$$;

create trigger audit_entries_append_only before update or delete on audit_entries
  for each row execute function refuse_audit_change();
create trigger audit_entries_no_truncate before truncate on audit_entries
  for each statement execute function refuse_audit_change();
