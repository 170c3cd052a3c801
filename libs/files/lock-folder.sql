-- Serializes the appends that change the folder $1, until the end of the transaction. A separate statement, because the next
-- one must see the commit of the append before. Appends lock the row of their Thread first, and the folder second.
select pg_advisory_xact_lock(hashtextextended('folder ' || $1, 0))
