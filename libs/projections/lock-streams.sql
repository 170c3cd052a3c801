-- Locks these Threads against appends until the transaction ends. All callers lock in the same order, to avoid deadlocks.
select thread_id as "threadId", version from streams where thread_id = any ($1::text[]) order by thread_id for update
