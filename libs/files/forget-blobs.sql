-- Removes the notes of bytes that are deleted.
delete from unclaimed_blobs where blob_key = any ($1::text[])
