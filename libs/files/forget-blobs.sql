-- These bytes are gone.
delete from unclaimed_blobs where blob_key = any ($1::text[])
