-- The Thread summaries of a range of thread ids.
select thread_id, agent_id, organization_id, user_id, kind, owner_person_id, owner_service_token_id, status, title,
       last_run_id, archived, created_at, updated_at, client_external_ref, external_ref, external_ref_token_id
from thread_summaries
where thread_id between $1 and $2
