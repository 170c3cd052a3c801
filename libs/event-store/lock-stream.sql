-- Keeps appends away from a Thread until the transaction ends, and tells its version and live Runs; no row: there is no such
-- Thread.
select version,
       array(select run ->> 'id' from jsonb_array_elements(state -> 'runs') as run) as "runIds"
from streams
where thread_id = $1
for update
