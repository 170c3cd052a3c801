-- Makes the waiting Run ready before the end of its delay, because the worker of the interrupted Run has stopped. Only a Run that
-- was never enqueued has this delay; a retry keeps its delay.
update run_work
set state  = 'ready',
    since  = clock_timestamp(),
    due_at = clock_timestamp() + queue_ms * interval '1 millisecond'
where run_id = $1 and state = 'delayed' and attempt = 0 and dispatch = 1 and due_at > clock_timestamp()
returning run_id as "runId", thread_id as "threadId", dispatch
