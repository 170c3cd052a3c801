-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- Streams that were deleted, so that nobody stores other events under the id of one. Kept for good. A hash does not give the id
-- away: of a deleted Thread no table keeps it, except the idempotency keys until they expire.
create table deleted_streams (
  thread_hash bytea       primary key,
  deleted_at  timestamptz not null default now()
);

-- Processes may run with a role that cannot change or delete events (docs/adr/0027). This is its one way to remove some: a
-- whole stream, which the caller names at the version that it has read. Fails otherwise, and then removes nothing.
create function delete_stream(of_thread text, at_version integer) returns void language plpgsql security definer as $$
begin
  -- Until this commits, nobody stores a first event of the Thread (refuse_deleted_stream).
  perform pg_advisory_xact_lock(hashtextextended(of_thread, 0));
  perform from streams where thread_id = of_thread and version = at_version for update;
  if not found then
    raise exception 'no Thread % at version %', of_thread, at_version using errcode = 'invalid_parameter_value';
  end if;
  delete from events where thread_id = of_thread;
  delete from streams where thread_id = of_thread;
  insert into deleted_streams (thread_hash) values (sha256(convert_to(of_thread, 'UTF8'))) on conflict do nothing;
end
$$;

revoke execute on function delete_stream from public;

create function refuse_deleted_stream() returns trigger language plpgsql security definer as $$
begin
  -- An older snapshot would not show a deletion that commits meanwhile.
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'a Thread begins in a transaction with the isolation level read committed' using errcode = 'feature_not_supported';
  end if;
  perform pg_advisory_xact_lock_shared(hashtextextended(new.thread_id, 0));
  if exists (select from deleted_streams where thread_hash = sha256(convert_to(new.thread_id, 'UTF8'))) then
    raise exception 'the Thread % was deleted', new.thread_id
      using errcode = 'unique_violation', constraint = 'deleted_streams_pkey';
  end if;
  return new;
end
$$;

-- Looks only at the first event of a stream, so that appends stay as fast. A stream without it is found by `spool verify`.
create trigger events_not_deleted before insert on events
  for each row when (new.version <= 1) execute function refuse_deleted_stream();

-- These functions run with the owner's rights. Without `pg_temp` at the end of the path, a temporary table of the caller's
-- would come first, and its trigger would run as the owner.
do $$
begin
  execute format('alter function delete_stream set search_path = %I, pg_temp', current_schema());
  execute format('alter function refuse_deleted_stream set search_path = %I, pg_temp', current_schema());
  execute format('alter function raise_policy_version set search_path = %I, pg_temp', current_schema());
end
$$;
