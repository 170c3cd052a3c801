import pg, { type ClientBase, type Pool } from 'pg';
import { monotonicFactory } from 'ulid';

/**
 * The tables of the independent floors, as an expert would create them for the same facts and queries. A row holds the state
 * of a Thread or Run. There is no queue table: partial indexes find the due Runs. A separate schema lets `append` use these
 * tables and Spool's on the same connections.
 */
export const PLAIN_SCHEMA = `
  create schema plain;
  create table plain.threads (
    id              text collate "C" primary key,
    organization_id text collate "C" not null,
    agent_id        text collate "C" not null,
    owner_id        text collate "C" not null,
    user_id         text        not null,
    kind            text        not null,
    status          text        not null,
    title           text,
    version         integer     not null,
    archived        boolean     not null default false,
    created_at      timestamptz not null,
    updated_at      timestamptz not null
  ) with (fillfactor = 80);
  create index threads_by_owner on plain.threads (owner_id, agent_id, updated_at desc, id desc);
  create index threads_by_user on plain.threads (agent_id, user_id, updated_at desc, id desc);

  create table plain.runs (
    id              text collate "C" primary key,
    thread_id       text collate "C" not null,
    organization_id text collate "C" not null,
    agent_version   integer     not null,
    status          text        not null,
    attempt         integer     not null default 0,
    worker_id       text,
    due_at          timestamptz,
    created_at      timestamptz not null,
    started_at      timestamptz,
    completed_at    timestamptz,
    error           jsonb,
    final_output    jsonb
  ) with (fillfactor = 70);
  create index runs_by_thread on plain.runs (thread_id, created_at desc, id desc);
  create index runs_ready on plain.runs (organization_id, created_at) where status = 'queued';
  create index runs_due on plain.runs (due_at) where due_at is not null;
  create index runs_by_end on plain.runs (completed_at) where completed_at is not null;

  create table plain.events (
    thread_id   text collate "C" not null,
    version     integer     not null,
    id          text collate "C" not null,
    type        text        not null,
    data        jsonb       not null,
    run_id      text collate "C",
    attempt     integer,
    occurred_at timestamptz not null,
    primary key (thread_id, version)
  );
  create index events_by_id on plain.events (thread_id, id);

  create table plain.idempotency_keys (
    token_id    text collate "C" not null,
    key         text collate "C" not null,
    fingerprint text collate "C" not null,
    thread_id   text collate "C" not null,
    status      smallint    not null,
    body        text        not null,
    created_at  timestamptz not null default now(),
    primary key (token_id, key)
  );
  create index idempotency_keys_by_age on plain.idempotency_keys (created_at);
`;

/** An event in the memory of the hand-written code. */
export interface PlainEvent {
  type: string;
  data: object;
}

/** The stored response to a request with an Idempotency-Key. */
export interface PlainAnswer {
  key: string;
  body: string;
}

/** A started Run, with the values that its next append checks. */
export interface PlainRun {
  threadId: string;
  runId: string;
  version: number;
  attempt: number;
}

/** Prevents plans that were made for an empty table from scanning it later. Spool's own sessions have the same settings. */
export const SESSION_SETTINGS = '-c timezone=UTC -c enable_seqscan=off -c jit=off';

/** Opens a pool for floors that use only plain tables. */
export function openPlainPool(databaseUrl: string, size: number): Pool {
  return new pg.Pool({ connectionString: databaseUrl, max: size, options: SESSION_SETTINGS });
}

export const newPlainId = monotonicFactory();

const OWNER = newPlainId();
const AGENT = newPlainId();
const ORGANIZATION = newPlainId();

const CREATE = `
  with thread as (
    insert into plain.threads (id, organization_id, agent_id, owner_id, user_id, kind, status, title, version, created_at, updated_at)
    values ($1, $3, $4, $5, $6, 'cattle', 'RUNNING', $7, cardinality($8::text[]), now(), now())
  ), run as (
    insert into plain.runs (id, thread_id, organization_id, agent_version, status, due_at, created_at)
    values ($2, $1, $3, 1, 'queued', now() + interval '10 minutes', now())
  ), answer as (
    insert into plain.idempotency_keys (token_id, key, fingerprint, thread_id, status, body)
    select $5, $11, $12, $1, 201, $13 where $11::text is not null
  )
  insert into plain.events (thread_id, version, id, type, data, run_id, occurred_at)
  select $1, version, id, type, data::jsonb, $2, now()
  from unnest($8::text[], $9::text[], $10::text[]) with ordinality as e (id, type, data, version)`;

const START = `
  with run as (
    update plain.runs set status = 'running', attempt = attempt + 1, worker_id = $6, started_at = now(),
                    due_at = now() + interval '10 seconds'
    where id = $2 and status = 'queued'
    returning attempt
  ), thread as (
    update plain.threads set version = $3 + cardinality($4::text[]) from run where id = $1 and version = $3 returning run.attempt
  )
  insert into plain.events (thread_id, version, id, type, data, run_id, attempt, occurred_at)
  select $1, $3 + e.version, e.id, e.type, e.data::jsonb, $2, thread.attempt, now()
  from thread, unnest($4::text[], $5::text[], $7::text[]) with ordinality as e (id, type, data, version)
  returning attempt`;

const APPEND = `
  with thread as (
    update plain.threads set version = $3 + cardinality($5::text[])
    where id = $1 and version = $3
      and exists (select from plain.runs where id = $2 and attempt = $4 and status = 'running')
    returning id
  )
  insert into plain.events (thread_id, version, id, type, data, run_id, attempt, occurred_at)
  select $1, $3 + e.version, e.id, e.type, e.data::jsonb, $2, $4, now()
  from thread, unnest($5::text[], $6::text[], $7::text[]) with ordinality as e (id, type, data, version)`;

const COMPLETE = `
  with run as (
    update plain.runs set status = 'completed', completed_at = now(), due_at = null, worker_id = null, final_output = $8::jsonb
    where id = $2 and attempt = $4 and status = 'running'
    returning id
  ), thread as (
    update plain.threads t set version = $3 + cardinality($5::text[]), status = 'IDLE', updated_at = now()
    from run where t.id = $1 and version = $3
    returning t.id
  )
  insert into plain.events (thread_id, version, id, type, data, run_id, attempt, occurred_at)
  select $1, $3 + e.version, e.id, e.type, e.data::jsonb, $2, $4, now()
  from thread, unnest($5::text[], $6::text[], $7::text[]) with ordinality as e (id, type, data, version)`;

/** The hand-written store of the independent floors. Each change is one statement, and therefore one transaction. */
export class PlainStore {
  constructor(private readonly database: Pick<ClientBase, 'query'> | Pick<Pool, 'query'>) {}

  /** Stores a new Thread with its first message and a queued Run. */
  async create(threadId: string, runId: string, events: PlainEvent[], answer?: PlainAnswer): Promise<void> {
    const title = 'Hello, how are you today?';
    const keyed = answer === undefined ? [null, null, null] : [answer.key, FINGERPRINT, answer.body];
    const values = [threadId, runId, ORGANIZATION, AGENT, OWNER, 'bench', title, ...columnsOf(events), ...keyed];
    await this.store({ name: 'plain-create', text: CREATE, values }, events.length);
  }

  /** Claims and starts a queued Run. */
  async start(threadId: string, runId: string, version: number, events: PlainEvent[]): Promise<PlainRun> {
    const [ids, types, data] = columnsOf(events);
    const values = [threadId, runId, version, ids, types, WORKER, data];
    const attempt = await this.store({ name: 'plain-start', text: START, values }, events.length);
    return { threadId, runId, version: version + events.length, attempt: attempt ?? NaN };
  }

  async append(run: PlainRun, events: PlainEvent[]): Promise<void> {
    const values = [run.threadId, run.runId, run.version, run.attempt, ...columnsOf(events)];
    await this.store({ name: 'plain-append', text: APPEND, values }, events.length);
    run.version += events.length;
  }

  /** Appends the end of the answer and completes the Run. */
  async complete(run: PlainRun, events: PlainEvent[], finalOutput: object): Promise<void> {
    const { threadId, runId, version, attempt } = run;
    const values = [threadId, runId, version, attempt, ...columnsOf(events), JSON.stringify(finalOutput)];
    await this.store({ name: 'plain-complete', text: COMPLETE, values }, events.length);
  }

  private async store(statement: { name: string; text: string; values: unknown[] }, expected: number) {
    const { rowCount, rows } = await this.database.query<{ attempt?: number }>(statement);
    if (rowCount !== expected)
      throw new Error(`the floor's ${statement.name} stored ${rowCount} of ${expected} events`);
    return rows[0]?.attempt;
  }
}

const WORKER = newPlainId();
const FINGERPRINT = '0123456789abcdef'.repeat(4);

function columnsOf(events: PlainEvent[]): [ids: string[], types: string[], data: string[]] {
  return [
    events.map(() => newPlainId()),
    events.map(({ type }) => type),
    events.map(({ data }) => JSON.stringify(data)),
  ];
}
