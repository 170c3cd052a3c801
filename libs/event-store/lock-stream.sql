-- Blocks appends to a Thread until the transaction ends. Returns its version and live Runs, or no row if there is no Thread.
select version,
       array(select run ->> 'id' from jsonb_array_elements(state -> 'runs') as run) as "runIds"
from streams
where thread_id = $1
for update
