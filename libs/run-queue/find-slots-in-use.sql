-- The slots of each organization, and the sum of the times since its Runs were claimed, seconds. Walks run_work_taken from one
-- organization to the next, so the ready rows of a backlog are not read.
with recursive
organization as (
  (select organization_id as id from run_work where state = 'leased' order by organization_id limit 1)
  union all
  select (
    select organization_id from run_work
    where state = 'leased' and organization_id > organization.id
    order by organization_id
    limit 1
  )
  from organization
  where organization.id is not null
)
select organization.id as "organizationId", claimed.slots, claimed.seconds
from organization
cross join lateral (
  select count(*)::integer as slots,
         coalesce(sum(extract(epoch from clock_timestamp() - since)), 0)::float8 as seconds
  from run_work
  where state = 'leased' and organization_id = organization.id
) as claimed
where organization.id is not null
