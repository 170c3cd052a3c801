-- Reads a page of the Threads of one owner ($1, in the column `:owner`) and of Agents ($2), last changed first, after the cursor
-- ($5, $6). A changed Thread moves to the front, so the other Threads are neither skipped nor repeated.
-- `:filters` are the conditions of the request.
-- Reads an equal share of the page for each Agent first. The oldest Thread of a page of these limits what is read then of the Agents
-- that may have more, so that a page with many Agents reads few Threads that are not on it.
with newest as materialized (
  select t.*
  from unnest($2::text[]) as agent (id)
  cross join lateral (
    select :thread_columns, row_number() over (order by updated_at desc, thread_id desc) as nth
    from thread_summaries
    where :owner = $1 and agent_id = agent.id
      and ($3::text is null or status = $3)
      and ($4::boolean is null or archived = $4)
      and ($5::timestamptz is null or (updated_at, thread_id) < ($5, $6::text))
      :filters
    order by updated_at desc, thread_id desc
    limit ceil($7 / cardinality($2)::float8)
  ) t
),
oldest as (select updated_at, thread_id from newest order by updated_at desc, thread_id desc offset $7 - 1 limit 1)
select :t.thread_columns from newest t
union all
select t.*
from newest last
cross join lateral (
  select :thread_columns
  from thread_summaries
  where :owner = $1 and agent_id = last.agent_id
    and ($3::text is null or status = $3)
    and ($4::boolean is null or archived = $4)
    and (updated_at, thread_id) < (last.updated_at, last.thread_id)
    and (updated_at, thread_id) >= (
      coalesce((select updated_at from oldest), '-infinity'), coalesce((select thread_id from oldest), '')
    )
    :filters
  order by updated_at desc, thread_id desc
  limit $7 - last.nth
) t
where last.nth = ceil($7 / cardinality($2)::float8)
order by updated_at desc, thread_id desc
limit $7
