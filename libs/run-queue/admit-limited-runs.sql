-- Makes Runs of the organization $1 ready that wait for a concurrency limit, as far as there is room, and at most $2. First come
-- Runs that were claimed before, then the longest waiting. They keep their places until they are claimed, so new Runs do not take
-- them. Two concurrent executions may admit too many Runs; the claim then refuses the surplus. $3: the limit of an organization
-- that has no own limit, or null.
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
room as materialized (
  select agent.id,
         (select agent_runs from concurrency_limits where agent_id = agent.id) - (
           select count(*) from run_work
           where (state = 'leased' or (state = 'ready' and limited_by is not null))
             and organization_id = $1 and agent_id = agent.id
         ) as runs
  from agent
  where agent.id is not null
),
room_in_all as materialized (
  select coalesce(max_runs, $3::integer) - (
           select count(*) from run_work
           where (state = 'leased' or (state = 'ready' and limited_by is not null)) and organization_id = $1
         ) as runs
  from organizations
  where id = $1
),
first as materialized (
  select run_id
  from room
  cross join lateral (
    select run_id, (attempt = 0) as is_new, since from run_work
    where state = 'limited' and organization_id = $1 and agent_id = room.id
    order by (attempt = 0), since
    limit greatest(0, least(room.runs, $2))
  ) as run
  order by is_new, since
  limit greatest(0, least((select runs from room_in_all), $2))
),
free as materialized (
  -- `offset 0` keeps it a look-up by key. Skips rows that an append or another admission is changing.
  select run.run_id
  from first
  cross join lateral (
    select run_id from run_work where run_id = first.run_id and state || '' = 'limited' offset 0 for update skip locked
  ) as run
)
update run_work
set state      = 'ready',
    due_at     = clock_timestamp() + queue_left,
    queue_left = null
-- `limit` takes all rows. It makes the planner expect few rows, and so use the key.
from (select run_id from free limit $2) as free
where run_work.run_id = free.run_id
returning run_work.run_id as "runId", thread_id as "threadId", dispatch
