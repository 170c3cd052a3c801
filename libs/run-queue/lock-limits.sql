-- For a claim under concurrency limits: one at a time a limit, until the transaction ends. Alone in its statement, because
-- the one after it must see what the claim before this one has committed. $1: that of the organization comes first for
-- everybody, so nobody waits in a circle.
select pg_advisory_xact_lock(hashtextextended('concurrency limit ' || id, 0)) from unnest($1::text[]) as id
