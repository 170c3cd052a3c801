-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- Where a file of a Thread stands in a folder: the Thread's own, or its agent's (a pet's). The previous release writes neither,
-- and its Threads show such a file among the others.
alter table files
  add column folder_id text collate "C",
  add column path      text collate "C",
  add constraint files_folder_check
    check ((folder_id is null) = (path is null) and (path is null or thread_id is not null));

create unique index files_by_folder on files (folder_id, path) where path is not null;
