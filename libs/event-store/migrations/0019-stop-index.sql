-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- Appends wait while this is built, about 1 s per million events; reads go on. Operators of large installations build it
-- beforehand (docs/operators.md): hence `if not exists`.

-- Finds the cancelled Runs of a Thread among its deltas (read-stopped-texts.sql).
create index if not exists events_stops on events (thread_id, version) where type = 'run.cancelled';
