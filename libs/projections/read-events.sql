-- The events of a range of thread ids in stream order, without the types $3. Does not read the data of the types $4, because
-- no fold uses it.
select thread_id, version, id, type, schema_version, case when type <> all ($4::text[]) then data end as data,
       run_id, attempt, public, occurred_at
from events
where thread_id between $1 and $2 and type <> all ($3::text[])
order by thread_id, version
