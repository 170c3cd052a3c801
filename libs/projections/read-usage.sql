-- The counters of files of all organizations.
select organization_id as "organizationId", files::float8 as files, bytes::float8 as bytes from file_usage
