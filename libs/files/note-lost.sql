-- Notes that the bytes $2 of the file $1 are lost ($3), or are back. Changes nothing if the file has other bytes by now.
update files set lost_at = case when $3 then now() end
where id = $1 and blob_key = $2 and (lost_at is not null) <> $3::boolean
