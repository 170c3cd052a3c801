-- Whether this transaction leaves the organization $1 more files or bytes than it can have, and has added $4 files and $5 bytes;
-- $2 and $3 are the installation's limits, null for none. What adds bytes and removes files is held to the limit of bytes
-- alone, and the other way round. Runs after the statement that changes files. Its trigger has locked the row that this reads,
-- so two appends that exceed the quota together do not both pass.
select $4::bigint > 0 and files > coalesce(max_files, $2::bigint)
    or $5::bigint > 0 and bytes > coalesce(max_file_bytes, $3::bigint) as exceeded
from file_quotas where organization_id = $1
