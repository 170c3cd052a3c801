-- Files whose Thread does not exist. The deletion of a Thread removes its files.
select f.id as "fileId", f.thread_id as "threadId"
from files f
where f.thread_id >= $1 and not exists (select from streams s where s.thread_id = f.thread_id)
order by f.thread_id, f.id
