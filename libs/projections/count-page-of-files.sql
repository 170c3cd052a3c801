-- Counts at most $2 files after the id $1, in the order of ids, for each organization. `last` is the last id counted.
with page as (
  select id, organization_id, size from files where id > $1 order by id limit $2
)
select organization_id as "organizationId", count(*)::float8 as files, sum(size)::float8 as bytes,
       max(max(id)) over () as last
from page
group by organization_id
