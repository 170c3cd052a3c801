-- Returns a row if the person ($2) is a member of the organization ($1). Every member is an existing person.
select from memberships where organization_id = $1 and person_id = $2
