import type { StoredEvent, ThreadState, WorkItem } from '#domain';
import type { RunSummary, ThreadSummary } from '#projections';

/** A row of `streams`; what is `jsonb` in PostgreSQL is text here, so that nobody shares an object with anybody. */
export interface StreamRow {
  version: number;
  lastEventId: string;
  lastOccurredAt: string;
  state: string;
  events: StoredEvent[];
  thread: string | null;
  runs: Map<string, string>;
}

/** A row of `run_work`; times are milliseconds of the database's clock. */
export interface StoredWorkItem {
  runId: string;
  threadId: string;
  organizationId: string;
  agentId: string;
  state: WorkItem['state'] | 'limited';
  dispatch: number;
  attempt: number;
  holder: string | null;
  dueAt: number | null;
  since: number;
  queueMs: number;
  workLeft: number;
  workUntil: number | null;
  limitedBy: 'agent' | 'organization' | null;
  /** What is left of its queue time while it is limited. */
  queueLeft: number | null;
}

/** The rows of `streams` and `run_work` that a statement locks. */
export interface Locks {
  threadId: string | null;
  runIds: string[];
}
export const NO_LOCKS: Locks = { threadId: null, runIds: [] };

/** A transaction that is open. What it writes is there for all once it commits; what it locks is locked until then. */
export interface Transaction {
  /** Threads and work rows that it has locked. */
  locked: string[];
  rows: string[];
  /** Ids of the limits that it has locked, and those that it has read. */
  limits: string[];
  checked: { agent: number | null; organization: number | null } | null;
  writes: (() => void)[];
  /** For how long it waits for a lock, and may be silent. */
  lockMs: number | undefined;
  idleMs: number | undefined;
}

/** As it begins: with the timeouts that are set in it, if any. */
export function newTransaction(begin: string): Transaction {
  const timeoutMs = (name: string): number | undefined => {
    const seconds = new RegExp(` ${name} = '(\\d+)s'`).exec(begin)?.[1];
    return seconds === undefined ? undefined : 1_000 * Number(seconds);
  };
  const timeouts = { lockMs: timeoutMs('lock_timeout'), idleMs: timeoutMs('idle_in_transaction_session_timeout') };
  return { locked: [], rows: [], limits: [], checked: null, writes: [], ...timeouts };
}

export interface KeyRow {
  fingerprint: string;
  threadId: string;
  status: number;
  body: string;
}

/** What an append has stored, for whoever watches. */
export interface Stored {
  threadId: string;
  before: number;
  events: StoredEvent[];
  key: string | null;
  /** In which, where it was not alone. */
  transaction: Transaction | null;
}

export interface TablesOptions {
  now: () => number;
  /** Bugs that are planted in the statements. */
  bugs: ReadonlySet<StatementBug>;
  onStored: (stored: Stored) => void;
  /** Work rows have changed without an append. */
  onTouched: () => void;
  onDeleted: (threadId: string) => void;
  /** Reports that an operator changed the tables directly. `text` is the same change in SQL. */
  onOperator?: ((text: string, values: unknown[]) => void) | undefined;
}

/**
 * Mistakes that a statement could have; a simulation that does not find one does not look. Some do no harm and cannot be
 * found alone: where the version is checked, the fence changes nothing, for the state that a worker decided on is then still so.
 */
export const STATEMENT_BUGS = [
  'an append does not check the version',
  'an append checks neither version nor fence',
  'nothing checks that a Run is due',
  'a step renews the lease',
  'the dispatcher does not see what was queued again',
  'the end of a Run leaves its work row',
  'delayed Runs are never woken',
  'a delete leaves the work rows',
  'an idempotency key is not stored',
  'a work row keeps its old dispatch',
  'a claim is leased for a quarter of its time',
  'a claim under a limit takes no lock',
  'nothing lets in what waits for a limit',
  'newcomers pass those who wait',
  'a place in a limit is kept for ever',
  'the queue time of a limited Run goes on',
  'a transcript lacks the results of ended Runs',
  'a transcript lacks the text that a stop cut',
  'void text counts as seen',
  'a group checks neither version nor fence',
  'a group returns that all members were appended',
  'a group returns its rows in another order',
  'a group loses its last member',
  'a group writes what is locked',
] as const;
/** Found only without faults, because the order of turns is promised for no other time. */
export const TURN_BUGS = ['organizations without a slot are taken for others', 'no slot-seconds are counted'] as const;
export type StatementBug = (typeof STATEMENT_BUGS)[number] | (typeof TURN_BUGS)[number];

const SET_ORGANIZATION = `insert into organizations (id, name, max_runs) values ($1, $1, $2)
  on conflict (id) do update set max_runs = excluded.max_runs`;
const SET_AGENT = `with agent as (
    insert into agents (id, organization_id, name, kind, live_version) values ($1, $2, $1, 'cattle', 1)
    on conflict (id) do nothing
  )
  insert into agent_versions (agent_id, version, manifest)
  values ($1, 1, jsonb_build_object('concurrency', jsonb_build_object('runs', $3::integer)))
  on conflict (agent_id, version) do update set manifest = excluded.manifest`;
const SET_PAUSE = `insert into queue_controls (queue, paused_at) values ($1, to_timestamp($2::float8 / 1000))
  on conflict (queue) do update set paused_at = excluded.paused_at`;

const ADD_WORKER = 'insert into workers (holder, slots, seen_at) values ($1, 1, to_timestamp($2::float8 / 1000))';

/** The tables that the code under simulation uses. What reads and writes them is in statements.ts. */
export class Tables {
  readonly streams = new Map<string, StreamRow>();
  readonly work = new Map<string, StoredWorkItem>();
  readonly keys = new Map<string, KeyRow>();
  readonly workers = new Map<string, { slots: number; seenAt: number }>();
  readonly pauses = new Map<string, number | null>();
  /** How many of their Runs may be executed at once; null: as many as there are slots. */
  readonly agents = new Map<string, { organizationId: string; runs: number | null }>();
  readonly organizations = new Map<string, number | null>();
  /** That of the statement that is being executed, or committed. */
  transaction: Transaction | null = null;
  /** Transactions that hold locks of work rows. */
  readonly locking = new Set<Transaction>();
  private writtenAt: number | null = null;

  constructor(readonly options: TablesOptions) {}

  get now(): number {
    return this.writtenAt ?? this.options.now();
  }

  /** At once, or when the transaction commits; by the clock of now in both. */
  write(act: () => void): void {
    const { transaction, now } = this;
    if (transaction === null) return act();
    transaction.writes.push(() => {
      this.writtenAt = now;
      act();
      this.writtenAt = null;
    });
  }

  /** Whether another transaction has locked that work row. */
  isLocked(runId: string): boolean {
    for (const transaction of this.locking)
      if (transaction !== this.transaction && transaction.rows.includes(runId)) return true;
    return false;
  }

  /** Adds an organization, or changes how many of its Runs may be executed at once. */
  setOrganization(id: string, runs: number | null): void {
    this.organizations.set(id, runs);
    this.options.onOperator?.(SET_ORGANIZATION, [id, runs]);
  }

  /** Adds an agent, or changes how many of its Runs may be executed at once. */
  setAgent(id: string, organizationId: string, runs: number | null): void {
    this.agents.set(id, { organizationId, runs });
    this.options.onOperator?.(SET_AGENT, [id, organizationId, runs]);
  }

  /** Adds a worker whose last heartbeat is two minutes old. The dispatcher removes it. */
  addLostWorker(): void {
    const seenAt = this.now - 120_000;
    this.workers.set('lost worker', { slots: 1, seenAt });
    this.options.onOperator?.(ADD_WORKER, ['lost worker', seenAt]);
  }

  /** Pauses a queue, or ends its pause without giving Runs their queue time back. */
  setPause(queue: string, isPaused: boolean): void {
    const at = isPaused ? this.now : null;
    this.pauses.set(queue, at);
    this.options.onOperator?.(SET_PAUSE, [queue, at]);
  }

  has(bug: StatementBug): boolean {
    return this.options.bugs.has(bug);
  }

  stateOf(threadId: string): ThreadState {
    const row = this.streams.get(threadId);
    return row === undefined ? { lifecycle: 'none' } : (JSON.parse(row.state) as ThreadState);
  }

  summariesOf(threadId: string): { thread: ThreadSummary | null; runs: RunSummary[] } {
    const row = this.streams.get(threadId);
    const runs = [...(row?.runs.values() ?? [])].map((text) => JSON.parse(text) as RunSummary);
    return { thread: row?.thread ? (JSON.parse(row.thread) as ThreadSummary) : null, runs };
  }
}
