-- Whether an append whose answer was lost was committed: its last event is there, or it is not.
select exists (select from events where thread_id = $1 and version = $2 and id = $3) as found
