-- Serializes the uploads of an owner until the end of the transaction, so that drafts are counted correctly. Returns the time
-- of the database, because drafts age by its clock.
select pg_advisory_xact_lock(hashtextextended('drafts of ' || $1, 0)), to_char(
  now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as now
