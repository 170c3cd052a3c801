-- What the agent of the Thread $1 sees: the files of the folder $2, and those of the Thread that have no place in one; oldest
-- first.
select id, thread_id, kind, name, mime_type, size, blob_key, path from files where folder_id = $2 and path is not null
union all
select id, thread_id, kind, name, mime_type, size, blob_key, path from files where thread_id = $1 and path is null
order by id
