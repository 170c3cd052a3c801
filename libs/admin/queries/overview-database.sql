-- PostgreSQL itself, and its time. Of the sessions of other roles one is told the database, and not of which kind they are, unless one may
-- read all statistics: those that are of a database are clients, but for a few of autovacuum.
select now() as at,
       current_setting('server_version') as version,
       (select count(*)::integer from pg_stat_activity
        where datid is not null and coalesce(backend_type, 'client backend') = 'client backend') as connections,
       current_setting('max_connections')::integer as "maxConnections",
       pg_database_size(current_database())::float8 as "sizeBytes"
