-- Returns whether an append whose result was lost was committed, by its last event.
select exists (select from events where thread_id = $1 and version = $2 and id = $3) as found
