-- Ids are upper-case ULIDs as text, compared byte by byte: collate "C".

create table organizations (
  id         text collate "C" primary key,
  name       text        not null,
  created_at timestamptz not null default now()
);

create table people (
  id         text collate "C" primary key,
  name       text        not null,
  created_at timestamptz not null default now()
);

create table memberships (
  organization_id text collate "C" not null references organizations,
  person_id       text collate "C" not null references people,
  primary key (organization_id, person_id)
);

create table agents (
  id              text collate "C" primary key,
  organization_id text collate "C" not null references organizations,
  owner_person_id text collate "C" references people,
  name            text        not null,
  description     text        not null default '',
  kind            text        not null check (kind in ('pet', 'cattle')),
  access          text        not null default 'organization' check (access in ('organization', 'invited')),
  published       boolean     not null default false,
  api_enabled     boolean     not null default true,
  live_version    integer,
  deleted_at      timestamptz,
  created_at      timestamptz not null default now()
);

create table agent_versions (
  agent_id   text collate "C" not null references agents,
  version    integer     not null,
  manifest   jsonb       not null,
  created_at timestamptz not null default now(),
  primary key (agent_id, version)
);

create table agent_people (
  agent_id  text collate "C" not null references agents,
  person_id text collate "C" not null references people,
  primary key (agent_id, person_id)
);

-- The token itself is shown once and never stored: hash is its SHA-256.
create table tokens (
  id                text collate "C" primary key,
  kind              text        not null check (kind in ('person', 'service', 'operator')),
  hash              bytea       not null unique,
  name              text        not null,
  organization_id   text collate "C" references organizations,
  person_id         text collate "C" references people,
  allow_attribution boolean     not null default false,
  created_at        timestamptz not null default now(),
  expires_at        timestamptz,
  revoked_at        timestamptz,
  last_used_at      timestamptz,
  check ((kind = 'person') = (person_id is not null)),
  check (kind <> 'service' or organization_id is not null)
);

create table token_agents (
  token_id text collate "C" not null references tokens,
  agent_id text collate "C" not null references agents,
  primary key (token_id, agent_id)
);

-- One row a Thread: the concurrency row and the decider's folded state, written by every append (docs/adr/0004).
create table streams (
  thread_id        text collate "C" primary key,
  version          integer     not null,
  last_event_id    text collate "C" not null,
  last_occurred_at timestamptz not null,
  state            jsonb       not null
) with (fillfactor = 70);

-- The only truth. transaction_id and global_position are for subscriptions over all streams (design, section 4).
create table events (
  thread_id       text collate "C" not null,
  version         integer     not null,
  id              text collate "C" not null,
  type            text        not null,
  schema_version  smallint    not null,
  data            jsonb       not null,
  run_id          text collate "C",
  attempt         integer,
  public          boolean     not null,
  occurred_at     timestamptz not null,
  transaction_id  xid8        not null default pg_current_xact_id(),
  global_position bigint      not null generated always as identity,
  primary key (thread_id, version)
);

create index events_log on events (thread_id, id) where public;

create index events_transcript on events (thread_id, version)
  where type in ('message.added', 'assistant.message_added', 'tool.confirmation_decided', 'tool.started', 'tool.completed');

create table thread_summaries (
  thread_id              text collate "C" primary key,
  agent_id               text collate "C" not null,
  organization_id        text collate "C" not null,
  user_id                text        not null,
  kind                   text        not null,
  owner_person_id        text collate "C",
  owner_service_token_id text collate "C",
  status                 text        not null,
  title                  text,
  last_run_id            text collate "C",
  archived               boolean     not null,
  created_at             timestamptz not null,
  updated_at             timestamptz not null
) with (fillfactor = 80);

create index thread_summaries_by_agent on thread_summaries (agent_id, updated_at desc, thread_id desc);

create table run_summaries (
  run_id       text collate "C" primary key,
  thread_id    text collate "C" not null,
  status       text        not null,
  trigger      text        not null,
  created_at   timestamptz not null,
  started_at   timestamptz,
  completed_at timestamptz,
  updated_at   timestamptz not null,
  error        jsonb,
  final_output jsonb
) with (fillfactor = 80);

create index run_summaries_by_thread on run_summaries (thread_id, created_at desc, run_id desc);

-- One row a live Run, for dispatcher and reaper, which are level-triggered over it (design, section 5).
create table run_work (
  run_id          text collate "C" primary key,
  thread_id       text collate "C" not null,
  organization_id text collate "C" not null,
  agent_id        text collate "C" not null,
  state           text        not null check (state in ('ready', 'leased', 'waiting', 'delayed')),
  dispatch        integer     not null,
  attempt         integer     not null,
  holder          text,
  -- When something is to happen, by this server's clock: offered again, requeued or expired. Null: never.
  due_at          timestamptz,
  -- Since when it has been in this state; the order in which ready rows are offered.
  since           timestamptz not null,
  -- The limit on being ready, for the moment when a delayed row becomes ready.
  queue_ms        bigint      not null,
  -- What is left of the work limit while nobody works, and when it passes while somebody does.
  work_left       interval    not null,
  work_until      timestamptz
) with (fillfactor = 70);

create index run_work_ready on run_work (organization_id, since) where state = 'ready';
create index run_work_due on run_work (due_at) where due_at is not null;
create index run_work_by_holder on run_work (holder) where holder is not null;

create table idempotency_keys (
  token_id    text collate "C" not null,
  key         text collate "C" not null,
  fingerprint text collate "C" not null,
  thread_id   text collate "C",
  status      smallint    not null,
  body        text        not null,
  created_at  timestamptz not null default now(),
  primary key (token_id, key)
);

create index idempotency_keys_by_age on idempotency_keys (created_at);
create index idempotency_keys_by_thread on idempotency_keys (thread_id) where thread_id is not null;

create table files (
  id         text collate "C" primary key,
  thread_id  text collate "C",
  run_id     text collate "C",
  kind       text        not null check (kind in ('attachment', 'artifact')),
  name       text        not null,
  mime_type  text,
  size       bigint      not null check (size >= 0),
  sha256     text        not null,
  blob_key   text        not null,
  created_at timestamptz not null default now()
);

create index files_by_thread on files (thread_id, id);

-- Pause is a row: paused_at is null while the queue runs.
create table queue_controls (
  queue     text primary key,
  paused_at timestamptz
);

-- Workers that are alive, for the window (2 x all slots) and for operators.
create table workers (
  holder  text primary key,
  slots   integer     not null,
  seen_at timestamptz not null
);
