-- The worker of the interrupted Run has stopped: the Run that waits for it need not wait for the full delay. Only one
-- that was never offered has that delay; a retry keeps its own.
update run_work
set due_at = clock_timestamp()
where run_id = $1 and state = 'delayed' and attempt = 0 and dispatch = 1 and due_at > clock_timestamp()
