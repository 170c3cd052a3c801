-- A page of the Threads of one owner ($1, in the column that `:owner` names) and one agent, last changed first, after the
-- Thread that the cursor names. A Thread that changes goes to the front, so the others are neither skipped nor doubled.
-- `:user` is a condition on the application's user where one is asked for.
select thread_id, agent_id, organization_id, user_id, kind, owner_person_id, owner_service_token_id, status, title,
       last_run_id, archived, created_at, updated_at, client_external_ref
from thread_summaries
where :owner = $1 and agent_id = $2
  and ($3::text is null or status = $3)
  and ($4::boolean is null or archived = $4)
  and ($5::timestamptz is null or (updated_at, thread_id) < ($5, $6::text))
  :user
order by updated_at desc, thread_id desc
limit $7
