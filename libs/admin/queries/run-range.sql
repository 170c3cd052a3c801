-- The range of versions in the Thread $1 for a Run between the event ids $2 and $3 (null for a live Run). Uses the index of the
-- public log, in which each Run has entries.
select coalesce((
         select version from events where thread_id = $1 and public and id < $2 order by id desc limit 1
       ), 0) as "from",
       coalesce((
         select version from events where thread_id = $1 and public and id > $3 order by id limit 1
       ), (select version from streams where thread_id = $1), 0) as "to"
