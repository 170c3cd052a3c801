-- A page of the Threads of one owner ($1, in the column that `:owner` names) and of Agents ($2), last changed first, after the
-- Thread that the cursor names. A Thread that changes goes to the front, so the others are neither skipped nor doubled.
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
