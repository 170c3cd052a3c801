-- Fails instead of waiting long for a lock, because waiting blocks everybody else too. The migration can be repeated.
set local lock_timeout = '5s';

-- Appends wait while this index is built, about 0.5 s per million events in memory; reads do not. `if not exists`, because
-- operators of large installations build it beforehand (docs/operations/upgrade.md).

-- Finds the requests and decisions of a Thread without reading its deltas (read-log-after.sql, run-requests.sql).
create index if not exists events_requests on events (thread_id, id)
  where type in ('tool.confirmation_requested', 'tool.confirmation_decided');
