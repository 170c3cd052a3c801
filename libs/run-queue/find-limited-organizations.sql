-- The organizations with Runs that wait for a concurrency limit. Walks the index from one organization to the next.
with recursive
organization as (
  (select organization_id as id from run_work where state = 'limited' order by organization_id limit 1)
  union all
  select (
    select organization_id from run_work
    where state = 'limited' and organization_id > organization.id
    order by organization_id
    limit 1
  )
  from organization
  where organization.id is not null
)
select id from organization where id is not null
