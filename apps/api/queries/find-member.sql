-- Whether the person is a member of the organization; every member is a person that exists.
select from memberships where organization_id = $1 and person_id = $2
