-- Returns the first of the ids $1 that is not a draft which the owner $3 or $4 and its user $6 (null: any) can attach to a Thread of
-- the agent $2.
select wanted.id
from unnest($1::text[]) with ordinality as wanted (id, place)
where not exists (
  select from files
  where files.id = wanted.id and thread_id is null and agent_id = $2
    and (owner_person_id = $3 or owner_service_token_id = $4)
    and ($6::text is null or owner_user_id = $6)
    and created_at > now() - $5::bigint * interval '1 millisecond'
)
order by place
limit 1
