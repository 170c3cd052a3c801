-- Returns whether the organization $1 exceeds its quota after this transaction added $4 files and $5 bytes. $2 and $3 are the
-- limits of the installation, null for none. A change that adds bytes and removes files is checked for bytes only, and vice
-- versa. Runs after the statement that changes files. Its trigger has locked the row that this reads,
-- so two appends that exceed the quota together do not both pass.
select $4::bigint > 0 and files > coalesce(max_files, $2::bigint)
    or $5::bigint > 0 and bytes > coalesce(max_file_bytes, $3::bigint) as exceeded
from file_quotas where organization_id = $1
