-- Between which versions of the Thread $1 the events are that a Run can have which began after the event id $2 and ended
-- before the id $3 (null: it goes on): by the index of the public log, which each Run has entries in.
select coalesce((
         select version from events where thread_id = $1 and public and id < $2 order by id desc limit 1
       ), 0) as "from",
       coalesce((
         select version from events where thread_id = $1 and public and id > $3 order by id limit 1
       ), (select version from streams where thread_id = $1), 0) as "to"
