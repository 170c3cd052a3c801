-- The state of PostgreSQL, and its time. A role without pg_read_all_stats sees no backend_type in sessions of other roles. Counts
-- those with a database as clients; only a few are autovacuum workers.
select now() as at,
       current_setting('server_version') as version,
       (select count(*)::integer from pg_stat_activity
        where datid is not null and coalesce(backend_type, 'client backend') = 'client backend') as connections,
       current_setting('max_connections')::integer as "maxConnections",
       pg_database_size(current_database())::float8 as "sizeBytes"
