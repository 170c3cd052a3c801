-- A page of Threads, newest first: one ($1), or those of an organization, agent, owner, user, status, archived or not, after one ($9).
select thread_id as id,
       organization_id        as "organizationId",
       agent_id               as "agentId",
       user_id                as "userId",
       owner_person_id        as "ownerPersonId",
       owner_service_token_id as "ownerTokenId",
       kind, status, archived, title,
       last_run_id            as "lastRunId",
       created_at             as "createdAt",
       updated_at             as "updatedAt"
from thread_summaries
where ($1::text is null or thread_id = $1)
  and ($2::text is null or organization_id = $2)
  and ($3::text is null or agent_id = $3)
  and ($4::text is null or owner_person_id = $4)
  and ($5::text is null or owner_service_token_id = $5)
  and ($6::text is null or user_id = $6)
  and ($7::text is null or status = $7)
  and ($8::boolean is null or archived = $8)
  and ($9::text is null or thread_id < $9)
order by thread_id desc
limit $10
