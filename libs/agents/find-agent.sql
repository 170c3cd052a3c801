-- What the routes of an agent have to know of it, whatever its state.
select id,
       agents.organization_id   as "organizationId",
       owner_person_id          as "ownerPersonId",
       name,
       description,
       kind,
       access,
       published,
       api_enabled              as "apiEnabled",
       live_version             as "liveVersion",
       deleted_at is not null   as deleted,
       agent_runs               as "maxRuns",
       organization_runs        as "organizationMaxRuns"
from agents
join concurrency_limits on agent_id = id
where id = $1
