-- Returns the ordered statements that grant a role ($1) the rights of a process and no others. Names the append-only tables, and
-- those that only migrations, triggers and functions of the owner write. Processes may write all others. Does not use default
-- privileges, which would make each new table and view writable before its kind is known. Add new tables and views to
-- find-missing-rights.sql too.
with
here as (select current_schema() as schema),
tables as (
  select c.relname as name,
         case
           when c.relname in ('events', 'audit_entries') then 'select, insert'
           -- A view uses the rights of its owner, so a role that may write the view may write its tables.
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
-- Databases from before PostgreSQL 15 let every role create tables here.
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
