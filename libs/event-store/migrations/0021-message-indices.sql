-- Fails instead of waiting long for a lock, because waiting blocks everybody else too. The migration can be repeated.
set local lock_timeout = '5s';

-- Appends wait while these indices are built; reads do not. `if not exists`, because operators of large installations build them
-- beforehand (docs/operations/upgrade.md).

-- Finds the Runs of a Thread in the order in which they were queued (read-messages.sql).
create index if not exists events_queued on events (thread_id, id) where type = 'run.queued';

-- Finds the messages of a Run without reading its deltas. Ids of Runs are unique, so the index needs no Thread.
create index if not exists events_of_runs on events (run_id, version)
  where type in (
    'message.added', 'assistant.message_added', 'tool.started', 'tool.completed', 'tool.confirmation_requested',
    'tool.confirmation_decided', 'file.changed', 'files.updated', 'run.started', 'run.requeued', 'run.completed', 'run.failed',
    'run.cancelled', 'run.expired'
  );

-- Finds the files that callers attached, whose names messages show.
create index if not exists events_attachments on events (thread_id, id) where type = 'files.updated' and run_id is null;
