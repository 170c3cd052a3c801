-- A page of people, newest first. Filters: id ($1), name ($2), organization ($3). Cursor: $4.
select p.id, p.name, p.created_at as "createdAt",
       array(select m.organization_id from memberships m where m.person_id = p.id order by 1) as "organizationIds"
from people p
where ($1::text is null or p.id = $1) and ($2::text is null or p.name = $2)
  and ($3::text is null or exists (select from memberships m where m.organization_id = $3 and m.person_id = p.id))
  and ($4::text is null or p.id < $4)
order by p.id desc
limit $5
