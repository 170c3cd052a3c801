-- A new agent, not yet published.
insert into agents (id, organization_id, owner_person_id, name, description, kind, access)
values ($1, $2, $3, $4, $5, $6, $7)
