-- The Thread that has the reference ($4) of this token ($1), Agent ($2) and user ($3).
select thread_id as "threadId"
from thread_summaries
where external_ref_token_id = $1 and agent_id = $2 and user_id = $3 and external_ref = $4
