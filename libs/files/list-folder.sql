-- The files that the agent of the Thread $1 sees, oldest first: those of the folder $2, and those of the Thread without a path.
select id, thread_id, kind, name, mime_type, size, blob_key, path from files where folder_id = $2 and path is not null
union all
select id, thread_id, kind, name, mime_type, size, blob_key, path from files where thread_id = $1 and path is null
order by id
