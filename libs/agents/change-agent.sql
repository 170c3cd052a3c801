-- Changes what is given of an agent that is not deleted.
update agents
set published       = coalesce($2, published),
    api_enabled     = coalesce($3, api_enabled),
    access          = coalesce($4, access),
    owner_person_id = case when $5 then $6 else owner_person_id end,
    deleted_at      = case when $7 then now() end
where id = $1 and deleted_at is null
