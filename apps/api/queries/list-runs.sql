-- Reads a page of the Runs of a Thread ($1), newest first, after the cursor ($2). Returns at most $3 Runs, and ends the page once
-- their final outputs pass $4 bytes. Applies this bound first to the stored sizes, which are known without reading the outputs.
-- "found" is the number of Runs without the bound on bytes, at most $3 + 1. Runs keep their order and are never deleted alone, so
-- pages are stable.
select :run_columns, found
from (
  select *, sum(coalesce(octet_length(final_output::text), 0)) over newest_first
            - coalesce(octet_length(final_output::text), 0) as after
  from (
    select *, count(*) over ()::integer as found, row_number() over newest_first as place,
           sum(stored) over newest_first - stored as stored_after
    from (
      select :run_columns,
             coalesce(pg_column_size(final_output) * case when pg_column_compression(final_output) is null then 1 else 8 end, 0) as stored
      from run_summaries
      where thread_id = $1
        and ($2::text is null
             or (created_at, run_id) < (select c.created_at, c.run_id from run_summaries c
                                        where c.run_id = $2 and c.thread_id = $1))
      order by created_at desc, run_id desc
      limit $3::bigint + 1
    ) runs
    window newest_first as (order by created_at desc, run_id desc rows unbounded preceding)
  ) placed
  where stored_after < $4::bigint and place <= $3::bigint
  window newest_first as (order by created_at desc, run_id desc rows unbounded preceding)
) sized
where after < $4::bigint
order by created_at desc, run_id desc
