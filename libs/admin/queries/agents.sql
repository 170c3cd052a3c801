-- A page of agents, newest first. Filters: id ($1), organization ($2), name ($3), deleted ($4). Cursor: $5.
select a.id,
       a.organization_id as "organizationId",
       (select o.name from organizations o where o.id = a.organization_id) as "organizationName",
       a.owner_person_id as "ownerPersonId",
       a.name, a.description, a.kind, a.access, a.published,
       a.api_enabled     as "apiEnabled",
       a.live_version    as "liveVersion",
       a.created_at      as "createdAt",
       a.deleted_at      as "deletedAt",
       array(select p.person_id from agent_people p where p.agent_id = a.id order by 1) as "invitedPersonIds"
from agents a
where ($1::text is null or a.id = $1)
  and ($2::text is null or a.organization_id = $2)
  and ($3::text is null or a.name = $3)
  and ($4::boolean is null or (a.deleted_at is not null) = $4)
  and ($5::text is null or a.id < $5)
order by a.id desc
limit $6
