-- One append at a time changes the folder $1, from here to the end of its transaction. Alone in its statement, because the one
-- after it must see what the append before this one has committed. Appends lock their Thread's row first, this second.
select pg_advisory_xact_lock(hashtextextended('folder ' || $1, 0))
