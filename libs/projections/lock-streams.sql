-- Keeps appends away from these Threads until the transaction ends, in one order for everybody who does this.
select thread_id as "threadId", version from streams where thread_id = any ($1::text[]) order by thread_id for update
