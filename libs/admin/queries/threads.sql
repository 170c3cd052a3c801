-- A page of Threads, newest first. Filters: id ($1), organization ($2), agent ($3), owner ($4, $5), user ($6), status ($7),
-- archived ($8), reference ($11). Cursor: $9.
-- Looks up organizations, users and references also by their agents, because the indexes begin with the agent.
select t.thread_id as id,
       t.organization_id        as "organizationId",
       (select o.name from organizations o where o.id = t.organization_id) as "organizationName",
       t.agent_id               as "agentId",
       (select a.name from agents a where a.id = t.agent_id) as "agentName",
       t.user_id                as "userId",
       t.owner_person_id        as "ownerPersonId",
       t.owner_service_token_id as "ownerTokenId",
       exists (select from chat_tokens c join tokens k on k.id = c.token_id
               where c.organization_id = t.organization_id and c.token_id = t.owner_service_token_id
                 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())) as "ofChat",
       coalesce(t.external_ref, t.client_external_ref) as "externalRef",
       t.kind, t.status, t.archived, t.title,
       t.last_run_id            as "lastRunId",
       (select r.status from run_summaries r where r.run_id = t.last_run_id) as "lastRunStatus",
       t.created_at             as "createdAt",
       t.updated_at             as "updatedAt"
from thread_summaries t
where ($1::text is null or t.thread_id = $1)
  and ($2::text is null or t.organization_id = $2 and t.agent_id = any (array(
        select a.id from agents a where a.organization_id = $2)))
  and ($3::text is null or t.agent_id = $3)
  and ($4::text is null or t.owner_person_id = $4)
  and ($5::text is null or t.owner_service_token_id = $5)
  and ($6::text is null or t.user_id = $6 and t.agent_id = any (array(select a.id from agents a)))
  and ($7::text is null or t.status = $7)
  and ($8::boolean is null or t.archived = $8)
  and ($9::text is null or t.thread_id < $9)
  and ($11::text is null or coalesce(t.external_ref, t.client_external_ref) = $11
                            and t.agent_id = any (array(select a.id from agents a)))
order by t.thread_id desc
limit $10
