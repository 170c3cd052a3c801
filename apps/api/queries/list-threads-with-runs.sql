-- Adds the newest Run to each Thread of a page (`:page`, which reads one Thread more than requested, $7 in all). Ends the page once
-- the final outputs exceed `:max_bytes`. Applies this bound first to the stored sizes, which are known without reading the outputs.
-- "found" is the number of Threads without these bounds. Reads Threads and Runs in one snapshot.
with page as materialized (
:page
),
placed as (
  select *, sum(stored) over (order by place) - stored as stored_before
  from (
    select to_jsonb(p) as thread, p.last_run_id,
           row_number() over (order by p.updated_at desc, p.thread_id desc) as place,
           count(*) over ()::integer as found,
           coalesce((select pg_column_size(final_output) * case when pg_column_compression(final_output) is null then 1 else 8 end
                     from run_summaries where run_id = p.last_run_id), 0) as stored
    from page p
  ) threads
)
select thread, run, found
from (
  select thread, run, found, place, sum(coalesce(bytes, 0)) over (order by place) - coalesce(bytes, 0) as before
  from placed
  -- `limit` makes the planner look up each Run by its key.
  left join lateral (
    select to_jsonb(r) as run, octet_length(r.final_output::text) as bytes
    from run_summaries r where r.run_id = placed.last_run_id limit 1
  ) run on true
  where stored_before < :max_bytes and place < $7
) sized
where before < :max_bytes
order by place
