-- Makes ready Runs of the organization $1 wait if earlier Runs wait for the limit of the same agent or of the organization; at
-- most $2. They need not be enqueued first, and their queue time stops, as it did while the queue was paused or unavailable.
-- A Run that was claimed before does not wait in line again.
with recursive
agent as (
  (select agent_id as id from run_work where state = 'limited' and organization_id = $1 order by agent_id limit 1)
  union all
  select (
    select agent_id from run_work
    where state = 'limited' and organization_id = $1 and agent_id > agent.id
    order by agent_id
    limit 1
  )
  from agent
  where agent.id is not null
),
line as materialized (
  select id as agent_id, 'agent' as limited_by
  from agent
  where exists (select from run_work
                where state = 'limited' and organization_id = $1 and agent_id = agent.id and limited_by = 'agent')
  union all
  select null, 'organization'
  where exists (select from run_work where state = 'limited' and organization_id = $1 and limited_by = 'organization')
),
newcomer as materialized (
  select run.run_id, line.limited_by
  from line
  cross join lateral (
    select run_id from run_work
    where state = 'ready' and limited_by is null and attempt = 0 and organization_id = $1
      and (line.agent_id is null or agent_id = line.agent_id)
    limit $2
    for update skip locked
  ) as run
  -- Keeps the update a look-up by key, even if it was planned when the table was empty.
  limit $2
)
update run_work
set state      = 'limited',
    limited_by = newcomer.limited_by,
    queue_left = due_at - least(clock_timestamp(), (select greatest(since, paused_at) from queue_controls
                                                    where paused_at is not null order by paused_at limit 1)),
    due_at     = null
from newcomer
where run_work.run_id = newcomer.run_id
