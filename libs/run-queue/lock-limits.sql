-- Locks concurrency limits for a claim until the transaction ends. It is a separate statement, because the next one must see what
-- the previous claim committed. $1: the ids, always with the organization first, so no deadlock is possible.
select pg_advisory_xact_lock(hashtextextended('concurrency limit ' || id, 0)) from unnest($1::text[]) as id
