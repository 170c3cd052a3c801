-- The statements that give a role ($1) the rights of a process and no others, in their order. Tables that only grow and those
-- that only migrations, triggers and functions of the owner write are named; all others are the processes' to write. Not by
-- default privileges: they would open each new table and view to writes before it is known which of these it is. A new table
-- or view belongs into find-missing-rights.sql too.
with
here as (select current_schema() as schema),
tables as (
  select c.relname as name,
         case
           when c.relname in ('events', 'audit_entries') then 'select, insert'
           -- A view is worked with by its owner's rights: whoever may write it may write what it shows.
           when c.relname in ('migrations', 'policy_version', 'deleted_streams') or c.relkind in ('v', 'm') then 'select'
           else 'select, insert, update, delete'
         end as rights
  from pg_class c, here
  where c.relnamespace = here.schema::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
    and c.relowner = (select relowner from pg_class where oid = to_regclass('events'))
)
select format('grant connect on database %I to %I', current_database(), $1::text) as statement, 1 as place
where not has_database_privilege($1::text, current_database(), 'connect')
union all
-- Databases that are older than PostgreSQL 15 let everybody create tables here.
select format('revoke create on schema %I from public, %I', schema, $1::text), 2 from here
where has_schema_privilege($1::text, schema, 'create')
union all
select format('grant usage on schema %I to %I', schema, $1::text), 2 from here
union all
select format('revoke all on %I.%I from %I, public', schema, name, $1::text), 3 from tables, here
union all
select format('grant %s on %I.%I to %I', rights, schema, name, $1::text), 4 from tables, here
union all
select format('grant execute on function %I.delete_stream to %I', schema, $1::text), 5 from here
order by place
