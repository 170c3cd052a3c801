-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- Writes to Threads wait while these are built, about 1 s a million Threads; reads go on. Operators of large installations
-- build them beforehand (docs/operators.md): hence `if not exists`. Both are partial: a Thread without a reference pays for neither.

-- Its name is known to libs/event-store/thread-store.ts.
create unique index if not exists thread_summaries_external_ref
  on thread_summaries (external_ref_token_id, agent_id, user_id, external_ref) where external_ref is not null;

-- Lists of Threads by either kind of reference.
create index if not exists thread_summaries_by_reference
  on thread_summaries (agent_id, coalesce(external_ref, client_external_ref), updated_at desc, thread_id desc)
  where coalesce(external_ref, client_external_ref) is not null;
