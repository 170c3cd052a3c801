-- The token or person whose id is $1.
select kind, name from tokens where id = $1
union all
select 'person', name from people where id = $1
