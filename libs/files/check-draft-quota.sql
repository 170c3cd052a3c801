-- Returns whether the organization $1 exceeds its quota with $4 more files and $5 more bytes. $2 and $3 are the limits of the
-- installation, null for none. In the transaction that adds a draft, runs after the insert. Its trigger has locked the row of
-- `file_usage`, so two uploads that exceed the quota together do not both pass.
select coalesce(u.files, 0) + $4::bigint > coalesce(o.max_files, $2::bigint)
    or coalesce(u.bytes, 0) + $5::bigint > coalesce(o.max_file_bytes, $3::bigint) as exceeded
from organizations o left join file_usage u on u.organization_id = o.id
where o.id = $1
