-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- Whose quota a file counts for. The trigger below sets it for the previous release too. Files that are older than this
-- migration have none until housekeeping has counted them (count-old-files.sql): a rewrite of the table here would block it.
-- 0015 builds the indices: this lock blocks reads too, so it must be short.
alter table files
  add column if not exists organization_id text collate "C",
  -- Since when the blob store is known not to have the bytes of the file; null while nobody has missed them.
  add column if not exists lost_at         timestamptz;

-- How many files an organization can have, and bytes in all of them; null: the setting of the installation.
alter table organizations
  add column max_files      bigint check (max_files >= 0),
  add column max_file_bytes bigint check (max_file_bytes >= 0);

-- What an organization has: drafts, attachments, artifacts and files of folders.
create table file_usage (
  organization_id text collate "C" primary key,
  files           bigint not null,
  bytes           bigint not null
) with (fillfactor = 70);

create function set_file_organization() returns trigger language plpgsql as $$
begin
  new.organization_id := coalesce(
    (select organization_id from thread_summaries where thread_id = new.thread_id),
    (select organization_id from agents where id = new.agent_id)
  );
  return new;
end
$$;

create trigger files_organization before insert on files for each row execute function set_file_organization();

-- Once a statement, not a row. At the end of the statement, so that the row of `file_usage` is the last lock that it takes; in
-- the order of organizations, so that two statements over several of them cannot deadlock.
create function count_files() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into file_usage as u (organization_id, files, bytes)
    select organization_id, count(*), sum(size) from new_files
    where organization_id is not null
    group by organization_id order by organization_id
    on conflict (organization_id) do update set files = u.files + excluded.files, bytes = u.bytes + excluded.bytes;
  elsif tg_op = 'DELETE' then
    insert into file_usage as u (organization_id, files, bytes)
    select organization_id, -count(*), -sum(size) from old_files
    where organization_id is not null
    group by organization_id order by organization_id
    on conflict (organization_id) do update set files = u.files + excluded.files, bytes = u.bytes + excluded.bytes;
  else
    insert into file_usage as u (organization_id, files, bytes)
    select organization_id, sum(files), sum(bytes)
    from (
      select organization_id, 1 as files, size as bytes from new_files
      union all
      select organization_id, -1, -size from old_files
    ) as changes
    where organization_id is not null
    group by organization_id having sum(files) <> 0 or sum(bytes) <> 0 order by organization_id
    on conflict (organization_id) do update set files = u.files + excluded.files, bytes = u.bytes + excluded.bytes;
  end if;
  return null;
end
$$;

create trigger files_added after insert on files
  referencing new table as new_files for each statement execute function count_files();
create trigger files_changed after update on files
  referencing old table as old_files new table as new_files for each statement execute function count_files();
create trigger files_removed after delete on files
  referencing old table as old_files for each statement execute function count_files();

-- What there is of each organization that has had files, and what its operator allows.
create view file_quotas as
select u.organization_id, u.files, u.bytes, o.max_files, o.max_file_bytes
from file_usage u left join organizations o on o.id = u.organization_id;
