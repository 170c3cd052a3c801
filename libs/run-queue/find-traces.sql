-- The traces of some Runs. `offset 0` keeps it a look-up by key. A join would walk the whole index if few rows have a trace.
select asked.run_id as "runId", trace.parent, trace.link
from unnest($1::text[]) as asked (run_id)
cross join lateral (
  select trace_parent as parent, trace_link as link from run_work
  where run_work.run_id = asked.run_id and trace_parent is not null
  offset 0
) as trace
