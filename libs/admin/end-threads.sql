-- Threads of a deleted agent ($1) that have not ended, with ids after $2.
select thread_id as "threadId"
from thread_summaries
where agent_id = $1 and status <> 'TERMINATED' and thread_id > $2
order by thread_id
limit $3
