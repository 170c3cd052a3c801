-- The next Runs of a bulk action ($1) that it has not come to, at most $2. The Agent is null if the Thread is deleted.
select r.run_id as "runId", r.thread_id as "threadId", t.agent_id as "agentId", t.organization_id as "organizationId"
from bulk_action_runs r
left join thread_summaries t on t.thread_id = r.thread_id
where r.action_id = $1 and r.outcome is null
order by r.run_id
limit $2
