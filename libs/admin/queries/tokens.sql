-- A page of tokens, newest first. Filters: id ($1), hash of the secret ($2), kind ($3), status ($4), person ($5),
-- organization ($6), permitted agent ($7), name ($10). Cursor: $8.
select t.id, t.kind, t.name, s.status,
       t.person_id       as "personId",
       (select p.name from people p where p.id = t.person_id) as "personName",
       t.organization_id as "organizationId",
       (select o.name from organizations o where o.id = t.organization_id) as "organizationName",
       array(select a.agent_id from token_agents a where a.token_id = t.id order by 1) as "agentIds",
       t.allow_attribution as "allowAttribution",
       t.requests_per_minute as "requestsPerMinute",
       t.max_streams     as "maxStreams",
       t.created_at      as "createdAt",
       t.expires_at      as "expiresAt",
       t.revoked_at      as "revokedAt",
       t.rotated_at      as "rotatedAt",
       case when t.old_hash_until > now() then t.old_hash_until end as "oldSecretUntil",
       t.last_used_at    as "lastUsedAt"
from tokens t
cross join lateral (
  select case when t.revoked_at is not null then 'revoked' when t.expires_at <= now() then 'expired' else 'active' end as status
) s
where ($1::text is null or t.id = $1)
  and ($2::bytea is null or t.hash = $2 or t.old_hash = $2)
  and ($3::text is null or t.kind = $3)
  and ($4::text is null or s.status = $4)
  and ($5::text is null or t.person_id = $5)
  and ($6::text is null or t.organization_id = $6)
  and ($7::text is null or exists (select from token_agents a where a.token_id = t.id and a.agent_id = $7))
  and ($8::text is null or t.id < $8)
  and ($10::text is null or t.name = $10)
order by t.id desc
limit $9
