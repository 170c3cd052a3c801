-- The files of a Thread, oldest first.
select id, thread_id, run_id, kind, name, mime_type, size, sha256, blob_key, created_at, agent_id, owner_person_id,
       owner_service_token_id, owner_user_id, folder_id, lost_at
from files
where thread_id = $1
order by id
