-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- Writes to files wait while these are built, about 1 s a million files; reads go on. Operators of large installations build
-- them beforehand (docs/operators.md): hence `if not exists`.

-- Housekeeping counts the files in it. It is empty once all old files are counted.
create index if not exists files_uncounted on files (id) where organization_id is null;

-- The overview counts lost files.
create index if not exists files_lost on files (lost_at) where lost_at is not null;
