-- A page of the files of the Thread $1, newest first. Cursor: $2.
select id, kind, name, path, mime_type as "mimeType", size, run_id as "runId", created_at as "createdAt"
from files
where thread_id = $1 and ($2::text is null or id < $2)
order by id desc
limit $3
