-- The worker of the interrupted Run has stopped: the Run that waits for it is ready now, rather than after the full delay.
-- Only one that was never offered has that delay; a retry keeps its own.
update run_work
set state  = 'ready',
    since  = clock_timestamp(),
    due_at = clock_timestamp() + queue_ms * interval '1 millisecond'
where run_id = $1 and state = 'delayed' and attempt = 0 and dispatch = 1 and due_at > clock_timestamp()
returning run_id as "runId", thread_id as "threadId", dispatch
