-- Reads a page of the Threads of one owner ($1, in the column `:owner`) and of Agents ($2), last changed first, after the cursor
-- ($5, $6). A changed Thread moves to the front, so the other Threads are neither skipped nor repeated.
-- Looks up each Agent separately, so a page reads at most one page of each. `:filters` are the conditions of the request.
select t.*
from unnest($2::text[]) as agent (id)
cross join lateral (
  select :thread_columns
  from thread_summaries
  where :owner = $1 and agent_id = agent.id
    and ($3::text is null or status = $3)
    and ($4::boolean is null or archived = $4)
    and ($5::timestamptz is null or (updated_at, thread_id) < ($5, $6::text))
    :filters
  order by updated_at desc, thread_id desc
  limit $7
) t
order by t.updated_at desc, t.thread_id desc
limit $7
