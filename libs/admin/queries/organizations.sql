-- A page of organizations, newest first: one ($1), all of a name ($2), after one ($3).
select id, name, created_at as "createdAt", json_build_object('runs', max_runs) as concurrency
from organizations
where ($1::text is null or id = $1) and ($2::text is null or name = $2) and ($3::text is null or id < $3)
order by id desc
limit $4
