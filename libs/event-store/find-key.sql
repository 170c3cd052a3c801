-- Returns the stored answer of an idempotency key.
select fingerprint, thread_id as "threadId", file_id as "fileId", status, body from idempotency_keys where token_id = $1 and key = $2
