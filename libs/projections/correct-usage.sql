-- Corrects the counter of the organization $1 by $2 files and $3 bytes.
insert into file_usage as u (organization_id, files, bytes) values ($1, $2, $3)
on conflict (organization_id) do update set files = u.files + excluded.files, bytes = u.bytes + excluded.bytes
