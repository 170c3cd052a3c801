-- Like threads.sql, for Threads with the text $12: the id of a Thread or Run, a user id, a reference, or a part of the title.
-- $13 is the id in upper case; null if $12 is not an id.
--
-- Looks up keys. For a user or reference with many Threads, finds the last changed ones, at most 10,000 per agent. Reads at most
-- 100,000 titles, from the newest Thread until the page is full. In one `or`, the planner would scan all Threads.
with found as materialized (
  select array(
    select $13::text where $13 is not null
    union
    select r.thread_id from run_summaries r where r.run_id = $13
    union
    select u.thread_id
    from agents a
    cross join lateral (
      select n.thread_id from thread_summaries n
      where n.agent_id = a.id and n.user_id = $12
      order by n.updated_at desc, n.thread_id desc
      limit 10000
    ) u
    union
    select e.thread_id
    from agents a
    cross join lateral (
      select n.thread_id from thread_summaries n
      where n.agent_id = a.id and coalesce(n.external_ref, n.client_external_ref) = $12
      order by n.updated_at desc, n.thread_id desc
      limit 10000
    ) e
  ) as ids
)
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
from (
  (select thread_id from thread_summaries where thread_id = any ((select ids from found)::text[]) order by thread_id desc)
  union all
  (select n.thread_id
   from (select thread_id, title from thread_summaries order by thread_id desc limit 100000) n
   where strpos(lower(n.title), lower($12)) > 0 and n.thread_id <> all ((select ids from found)::text[])
   order by n.thread_id desc)
) f
join thread_summaries t on t.thread_id = f.thread_id
where ($1::text is null or t.thread_id = $1)
  and ($2::text is null or t.organization_id = $2 and t.agent_id = any (array(
        select a.id from agents a where a.organization_id = $2)))
  and ($3::text is null or t.agent_id = $3)
  and ($4::text is null or t.owner_person_id = $4)
  and ($5::text is null or t.owner_service_token_id = $5)
  and ($6::text is null or t.user_id = $6 and t.agent_id = any (array(select a.id from agents a)))
  and ($7::text is null or t.status = $7)
  and ($8::boolean is null or t.archived = $8)
  and ($9::text is null or f.thread_id < $9)
  and ($11::text is null or coalesce(t.external_ref, t.client_external_ref) = $11)
order by f.thread_id desc
limit $10
