-- Whether the organization $1 has more files or bytes than it can have, counting $4 files and $5 bytes that it does not have
-- yet; $2 and $3 are the installation's limits, null for none. In the transaction that adds a draft this comes after the
-- insert, whose trigger has locked the row of `file_usage`: two uploads that together are too much do not both pass.
select coalesce(u.files, 0) + $4::bigint > coalesce(o.max_files, $2::bigint)
    or coalesce(u.bytes, 0) + $5::bigint > coalesce(o.max_file_bytes, $3::bigint) as exceeded
from organizations o left join file_usage u on u.organization_id = o.id
where o.id = $1
