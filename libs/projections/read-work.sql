-- The work items of some Runs.
select run_id as "runId", thread_id as "threadId", organization_id as "organizationId", agent_id as "agentId", state, dispatch, attempt,
       holder, due_at is not null as "isDue", queue_ms as "queueMs", work_until is not null as "hasWorkLimit"
from run_work
where run_id = any ($1::text[])
