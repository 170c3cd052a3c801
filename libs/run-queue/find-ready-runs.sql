-- The next ready Runs: first the oldest Run of each organization that has no slot, then round robin over organizations: the
-- oldest of each, then the second of each, and so on. An organization has a slot while one of its Runs is claimed.
--
-- Numbering all ready rows (`row_number() over (partition by …)`) would read the whole backlog, 10 ms for 10,000 rows, a hundred
-- times a second. This walks run_work_ready from one organization to the next instead, and reads of each only its share.
with recursive
organization as (
  (select organization_id as id from run_work where state = 'ready' order by organization_id limit 1)
  union all
  select (
    select organization_id from run_work
    where state = 'ready' and organization_id > organization.id
    order by organization_id
    limit 1
  )
  from organization
  where organization.id is not null
),
candidate as materialized (
  -- One look-up in run_work_taken for each organization.
  select id,
         exists (select from run_work where state = 'leased' and organization_id = organization.id) as has_slot
  from organization
  where id is not null
),
share as materialized (
  -- Twice the even share, because some organizations have fewer Runs. The next look reads the rest.
  select greatest(1, 2 * $1::integer / greatest(1, count(*)))::integer as runs from candidate
)
select ready.run_id as "runId", ready.thread_id as "threadId", ready.dispatch, candidate.id as "organizationId",
       candidate.has_slot as "hasSlot", ready.turn::integer as turn, ready.turn = share.runs as "maybeMore"
from share, candidate
cross join lateral (
  select run_id, thread_id, dispatch, since, row_number() over (order by since) as turn
  from (
    select run_id, thread_id, dispatch, since
    from (
      select run_id, thread_id, dispatch, since from run_work
      where state = 'ready' and organization_id = candidate.id
      order by since
      limit (select runs from share)
    ) as fair
    -- Only for the planner: without it, the estimate is so high that PostgreSQL compiles the query, for 30 to 250 ms.
    limit $1
  ) as oldest
) as ready
order by candidate.has_slot or ready.turn > 1, ready.turn, ready.since
limit $1
