import type { PoolClient } from 'pg';
import type { Rejection, StoredEvent, ThreadState, WorkItem } from '#domain';
import {
  inTransaction,
  isLargeJson,
  largeJson,
  namedStatement,
  queryTimeout,
  textOf,
  traceParent,
  type GroupedStatement,
  type GroupedValue,
  type NamedStatement,
} from '#platform';
import { withColumns, type RunSummary, type Summaries } from '#projections';

const sql = (fileName: string): NamedStatement => namedStatement(import.meta.dirname, fileName);

const APPEND = withColumns(sql('append.sql'));
const APPEND_EVENTS = sql('append-events.sql');

/**
 * Limits how long a hook waits for a lock, and how long a stopped process can hold one. A statement that waits occupies a
 * connection, even after its client has disconnected.
 */
const OTHERS_WAIT = `set local lock_timeout = '1s'; set local idle_in_transaction_session_timeout = '2s'`;

/** A Thread as a command sees it: the end of its stream, the folded state and the summaries. */
export interface LoadedThread {
  threadId: string;
  /** 0 while there is no stream. */
  version: number;
  lastEventId: string | null;
  lastOccurredAt: string | null;
  state: ThreadState;
  /** The Thread's summary and those of its live Runs. */
  summaries: Summaries;
}

export interface Fence {
  runId: string;
  attempt: number;
}

/**
 * The answer to keep under an idempotency key, in the same commit as its effect (docs/spec/decisions.md#idempotency).
 */
export interface KeyedAnswer {
  tokenId: string;
  key: string;
  fingerprint: string;
  status: number;
  body: string;
}

/** The answer to a request. It is stored if the request has a key. */
export type RequestAnswer = KeyedAnswer | { key?: undefined; body: string };

/** The content of a job: ids, never state. */
export interface RunJob {
  runId: string;
  threadId: string;
  dispatch: number;
}

export interface Append {
  before: LoadedThread;
  after: LoadedThread;
  events: readonly StoredEvent[];
  /** The claim that a worker writes under. The database refuses an old one. */
  fence?: Fence | undefined;
  /** For the reaper: the work item must have this attempt, and be due by the clock of the database. */
  due?: Fence | undefined;
  work: { rows: WorkItem[]; gone: string[] };
  answer?: KeyedAnswer | undefined;
  hook?: AppendHook | undefined;
}

/**
 * Statements that share the transaction of an append. Each returns null, or the reason why the append is refused. They throw
 * what pg throws.
 */
export interface AppendHook<Reason extends string = string> {
  /**
   * The id of a lock that the statements wait for. Appends of one process with the same id take turns, so that those that wait
   * do not occupy all connections of the pool.
   */
  lock?: string | undefined;
  /** The label of its refusals in `spool_appends_total`; `unmet` if absent. */
  countedAs?: 'limited';
  /** Runs before the append. If it refuses, its own changes are committed. */
  before?: (client: PoolClient, timeoutMs?: number) => Promise<Reason | null>;
  /** Runs after the append, which has locked the Thread. If it refuses, everything is rolled back. */
  after?: (client: PoolClient, append: Append, timeoutMs?: number) => Promise<Reason | null>;
}

/**
 * The result of an append. If it is not `appended`, only the `before` of a hook can have stored anything.
 *
 * - `conflict`: the stream has new events, or the fence or the due date no longer holds. Load and decide again.
 * - `key_taken`: another request has the idempotency key, or is in progress under it.
 * - `refused`: the hook refused it, or another Thread of the same token, Agent and user has the `externalRef` of the new one.
 *
 * `isFinal`: an earlier sending of the same append cannot commit any more.
 */
export type AppendResult<Reason extends string = string> =
  | { outcome: 'appended' }
  | { outcome: 'conflict' }
  | { outcome: 'key_taken'; isFinal: boolean }
  | { outcome: 'refused'; reason: Reason | 'reference_taken'; isFinal: boolean };

/** The connection was lost after sending. `ThreadStore.wasAppended` tells whether it was committed. */
export interface LostResult {
  outcome: 'unknown';
}

/** Returns the most specific name of a result: the reason of a refusal, the code of a rejection, or else the outcome. */
export function nameOf(
  result: AppendResult | LostResult | { outcome: 'rejected'; rejection: Rejection } | { outcome: 'unchanged' },
): string {
  if (result.outcome === 'refused') return result.reason;
  return result.outcome === 'rejected' ? result.rejection.rejected : result.outcome;
}

/** An append with its events as they are sent: made before a connection is taken. */
export interface Prepared {
  append: Append;
  rows: EventRows;
}

/** The row that both statements return. */
interface AppendRow {
  appended: boolean;
  /** Only with an idempotency key. */
  lockHeld?: boolean;
  keySeen?: boolean;
}

/** Sends the append once, and waits `timeoutMs` for each response. Throws what pg throws. */
export async function sendAppend(client: PoolClient, prepared: Prepared, timeoutMs?: number): Promise<AppendResult> {
  const { hook } = prepared.append;
  if (hook === undefined) return appendStream(client, prepared, timeoutMs);
  const work = () => appendWithHook(client, prepared, hook, timeoutMs);
  const settings = hook.lock === undefined ? {} : { settings: OTHERS_WAIT };
  const { result } = await inTransaction(client, work, { keeps: ({ commits }) => commits, timeoutMs, ...settings });
  return result;
}

async function appendWithHook(
  client: PoolClient,
  prepared: Prepared,
  { before, after }: AppendHook,
  timeoutMs?: number,
): Promise<{ result: AppendResult; commits: boolean }> {
  const forbidden = await before?.(client, timeoutMs);
  if (forbidden) return { result: { outcome: 'refused', reason: forbidden, isFinal: true }, commits: true };
  const result = await appendStream(client, prepared, timeoutMs);
  if (result.outcome !== 'appended') return { result, commits: false };
  const reason = await after?.(client, prepared.append, timeoutMs);
  if (reason) return { result: { outcome: 'refused', reason, isFinal: false }, commits: false };
  return { result, commits: true };
}

async function appendStream(
  client: PoolClient,
  { append, rows: eventRows }: Prepared,
  timeoutMs?: number,
): Promise<AppendResult> {
  const statement = statementOf(append, eventRows, false);
  const { rows } = await client.query<AppendRow>({ ...statement, ...queryTimeout(timeoutMs) });
  const [row] = rows;
  if (row?.appended) return { outcome: 'appended' };
  if (row?.keySeen) return { outcome: 'key_taken', isFinal: true };
  // The lock may be that of an earlier sending.
  if (row?.lockHeld === false) return { outcome: 'key_taken', isFinal: false };
  return { outcome: 'conflict' };
}

/**
 * Returns the statement of an append that may share a transaction with others (docs/adr/0038). Null if it must go alone: it has
 * a hook, checks whether a Run is due, is large, or has a new `externalRef` and so may wait for another transaction.
 */
export function groupedStatement({ append, rows }: Prepared): GroupedStatement | null {
  const takesReference = append.before.version === 0 && typeof append.after.summaries.thread?.external_ref === 'string';
  if (append.hook || append.due || takesReference || typeof rows !== 'string') return null;
  const { name, text, values } = statementOf(append, rows, true);
  // Only events that are large are a Buffer.
  return { name: `${name}-in-group`, text, values: values.map((value) => textOf(value as GroupedValue)) };
}

function statementOf(append: Append, rows: EventRows, inGroup: boolean): Statement {
  return isEventsOnly(append) ? appendEvents(append, rows, inGroup) : appendWhole(append, rows, inGroup);
}

type Statement = NamedStatement & { values: (GroupedValue | Buffer)[] };

/** Returns whether the append changes nothing but the stream. Most appends, such as deltas and steps of a Run, are like this. */
function isEventsOnly({ before, after, work, due, answer }: Append): boolean {
  const { state, summaries } = after;
  const sameSummaries = summaries.thread === before.summaries.thread && changedRuns(before, after).length === 0;
  const alone = work.rows.length === 0 && work.gone.length === 0 && !due && !answer;
  return before.version > 0 && state === before.state && sameSummaries && alone;
}

/** Returns the changed summaries. `foldSummaries` keeps the objects of unchanged ones. */
function changedRuns(before: LoadedThread, after: LoadedThread): RunSummary[] {
  return [...after.summaries.runs.values()].filter((run) => before.summaries.runs.get(run.run_id) !== run);
}

/** The events as a parameter of type `jsonb`. */
export type EventRows = string | Buffer;

/** PostgreSQL's binary `jsonb` begins with its version. pg sends a Buffer as binary and does not encode it again. */
const JSONB_VERSION = Buffer.of(1);

/** Serializes events. Serializes large texts in steps, so that they do not block the event loop. */
export async function eventRows(events: readonly StoredEvent[]): Promise<EventRows> {
  const rows = events.map((event) => ({
    version: event.version,
    id: event.id,
    type: event.type,
    schema_version: event.schemaVersion,
    data: event.data,
    run_id: event.runId,
    attempt: event.attempt,
    public: event.public,
  }));
  return isLargeJson(rows) ? Buffer.concat([JSONB_VERSION, await largeJson(rows)]) : JSON.stringify(rows);
}

function appendEvents({ before, after, fence }: Append, rows: EventRows, inGroup: boolean): Statement {
  const { threadId, version, lastEventId, lastOccurredAt } = after;
  const place = [threadId, before.version, version, lastEventId, lastOccurredAt];
  return { ...APPEND_EVENTS, values: [...place, rows, fence?.runId ?? null, fence?.attempt ?? null, inGroup] };
}

function appendWhole(append: Append, rows: EventRows, inGroup: boolean): Statement {
  return { ...APPEND, values: Object.values(inputsOf(append, rows, inGroup)) };
}

/** Returns the inputs of append.sql under the names that its `input` gives them, in the same order. */
export function inputsOf({ before, after, fence, due, work, answer }: Append, events: EventRows, inGroup: boolean) {
  const threadChanged = after.summaries.thread !== before.summaries.thread;
  const runs = changedRuns(before, after);
  const proof = due ?? fence;
  return {
    thread_id: after.threadId,
    version_before: before.version,
    version: after.version,
    last_event_id: after.lastEventId,
    occurred_at: after.lastOccurredAt,
    state: after.state === before.state ? null : JSON.stringify(after.state),
    events,
    proof_run_id: proof?.runId ?? null,
    proof_attempt: proof?.attempt ?? null,
    thread_summary: threadChanged ? JSON.stringify([after.summaries.thread]) : null,
    run_summaries: runs.length > 0 ? JSON.stringify(runs) : null,
    work: work.rows.length > 0 ? JSON.stringify(work.rows) : null,
    work_gone: work.gone.length > 0 ? work.gone : null,
    is_due: due !== undefined,
    token_id: answer?.tokenId ?? null,
    key: answer?.key ?? null,
    fingerprint: answer?.fingerprint ?? null,
    status: answer?.status ?? null,
    body: answer?.body ?? null,
    trace_parent: traceParent(),
    work_in_group: inGroup ? [...work.rows.map(({ runId }) => runId), ...work.gone] : null,
  };
}
