-- Returns the Agent of a service token ($1) that has been unused for the longest time. Its use is the last change of a Thread of
-- this token. Adding the Agent counts too, because its page may be open without a Thread.
select listed.agent_id as "agentId"
from token_agents listed
left join lateral (
  select updated_at
  from thread_summaries
  where owner_service_token_id = listed.token_id and agent_id = listed.agent_id
  order by updated_at desc
  limit 1
) newest on true
where listed.token_id = $1
order by greatest(newest.updated_at, listed.added_at) nulls first, listed.agent_id
limit 1
