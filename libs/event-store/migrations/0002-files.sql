-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- Drafts: files of an agent that no Thread has yet, each its uploader's.
alter table files
  add column agent_id               text collate "C",
  add column owner_person_id        text collate "C",
  add column owner_service_token_id text collate "C",
  add check (thread_id is not null or agent_id is not null);

create index files_drafts_by_person on files (owner_person_id, created_at)
  where thread_id is null and owner_person_id is not null;
create index files_drafts_by_service on files (owner_service_token_id, created_at)
  where thread_id is null and owner_service_token_id is not null;
create index files_drafts_by_age on files (created_at) where thread_id is null;

-- Bytes in the blob store that no file has: of an upload under way, of a file that was deleted, of a process that crashed.
-- The sweeper removes them when they are due.
create table unclaimed_blobs (
  blob_key text collate "C" primary key,
  due_at   timestamptz not null
);

create index unclaimed_blobs_by_due on unclaimed_blobs (due_at);

-- What the answer of an upload is about: it goes when the file does.
alter table idempotency_keys add column file_id text collate "C";
create index idempotency_keys_by_file on idempotency_keys (file_id) where file_id is not null;

-- Lists of Threads are of one agent and one owner, newest first, or of one of the caller's users.
create index thread_summaries_by_person on thread_summaries (owner_person_id, agent_id, updated_at desc, thread_id desc)
  where owner_person_id is not null;
create index thread_summaries_by_service
  on thread_summaries (owner_service_token_id, agent_id, updated_at desc, thread_id desc)
  where owner_service_token_id is not null;
create index thread_summaries_by_user on thread_summaries (agent_id, user_id, updated_at desc, thread_id desc);
-- Last: it keeps readers away for as long as the transaction lasts.
drop index thread_summaries_by_agent;

-- Counters of the rate limits, where there is no Redis. Lost in a crash of the server, as a minute is.
create unlogged table rate_limits (
  key        text collate "C" primary key,
  points     integer     not null,
  expires_at timestamptz not null
) with (fillfactor = 70);

create index rate_limits_by_end on rate_limits (expires_at);
