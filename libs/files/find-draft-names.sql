-- The names of the given files that are drafts, of any owner.
select id, name from files where id = any ($1::text[]) and thread_id is null
