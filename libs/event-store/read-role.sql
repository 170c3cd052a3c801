-- Returns the rights of the connection's role on the tables and on their schema.
with tables as (
  select oid, relname as name, relowner from pg_class
  where relnamespace = current_schema()::regnamespace and relkind = 'r'
    and relname in ('migrations', 'events', 'audit_entries', 'deleted_streams')
)
select current_user as name,
       (select pg_get_userbyid(relowner)::text from tables where name = 'events') as owner,
       (select rolsuper from pg_roles where rolname = current_user) as "isSuperuser",
       coalesce(
         (select bool_or(pg_has_role(relowner, 'MEMBER')) from tables),
         has_schema_privilege(current_schema(), 'create')
       ) as "isOwner",
       has_schema_privilege(current_schema(), 'create') as "mayCreate",
       array(
         select name::text from tables
         -- The right to update one column is enough to change a row. A trigger can change what others add.
         where name <> 'migrations'
           and (has_table_privilege(oid, 'delete, truncate, trigger') or has_any_column_privilege(oid, 'update'))
         order by name
       ) as "mayChange"
