-- A page of the audit log, newest first. Filters: actor ($1), prefix of the action ($2), target ($3), organization ($4),
-- since ($5), without sessions of the console ($8: false). Cursor: $6.
select id,
       occurred_at     as "occurredAt",
       json_build_object('kind', actor_kind, 'id', actor_id, 'name', actor_name) as actor,
       action,
       target_id       as "targetId",
       organization_id as "organizationId",
       details
from audit_entries
where ($1::text is null or actor_id = $1)
  and ($2::text is null or action = $2 or starts_with(action, $2 || '.'))
  and ($3::text is null or target_id = $3)
  and ($4::text is null or organization_id = $4)
  and ($5::timestamptz is null or occurred_at >= $5)
  and ($6::text is null or id < $6)
  and ($8::boolean is not false or not starts_with(action, 'session.'))
order by id desc
limit $7
