-- A page of organizations, newest first. Filters: id ($1), name ($2). Cursor: $3.
select id, name, created_at as "createdAt", json_build_object('runs', max_runs) as concurrency,
       (select json_build_object('count', coalesce(max(u.files), 0), 'bytes', coalesce(max(u.bytes), 0),
                 'maxCount', max_files, 'maxBytes', max_file_bytes)
        from file_usage u where u.organization_id = organizations.id) as files
from organizations
where ($1::text is null or id = $1) and ($2::text is null or name = $2) and ($3::text is null or id < $3)
order by id desc
limit $4
