-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- What the worker found of the sandbox of its tool servers at its start: {isolation, refused, warnings}. The release before
-- leaves it null.
alter table workers add column sandbox jsonb;
