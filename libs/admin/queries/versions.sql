-- A page of the versions of an agent ($1), newest first. Filters: version ($2), before a version ($3). $5: with manifests.
select v.version, v.created_at as "createdAt", v.version = a.live_version as live,
       case when $5::boolean then v.manifest end as manifest
from agent_versions v
join agents a on a.id = v.agent_id
where v.agent_id = $1 and ($2::integer is null or v.version = $2) and ($3::integer is null or v.version < $3)
order by v.version desc
limit $4
