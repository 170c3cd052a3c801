import type { PoolClient, QueryConfig } from 'pg';
import type { Rejection, StoredEvent, ThreadState, WorkRow } from '#domain';
import {
  inTransaction,
  isLargeJson,
  largeJson,
  namedStatement,
  traceParent,
  type FileQuota,
  type NamedStatement,
} from '#platform';
import type { RunSummary, Summaries } from '#projections';
import { changeFiles, type FileChanges } from './append-files.ts';
import { limit } from './limit.ts';

export type * from './append-files.ts';

const sql = (fileName: string): NamedStatement => namedStatement(import.meta.dirname, fileName);

const APPEND = sql('append.sql');
const APPEND_EVENTS = sql('append-events.sql');
const LOCK_LIMITS = sql('lock-limits.sql');
const REFUSE_BEYOND_LIMITS = sql('refuse-beyond-limits.sql');

/**
 * An append waits for the lock of a limit or a folder no longer, and holds it no longer than that between two statements when
 * its process is stopped: who waits on the server keeps a connection, also when the client has hung up.
 */
const OTHERS_WAIT = `set local lock_timeout = '1s'; set local idle_in_transaction_session_timeout = '2s'`;

/** A Thread as a command sees it: where its stream stands, the folded state, and the summaries of what is live. */
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

/** A claim whose Run may be too many: it is checked under the locks of the limits that there are. */
export interface LimitedClaim extends RunOffer {
  organizationId: string;
  agentId: string;
  /** Ids of the organization and the agent, in this order, as far as they have a limit. */
  limits: readonly string[];
  /** The limit of an organization that has none of its own; null: none. */
  organizationCap: number | null;
}

/** What a job carries: ids, never state. */
export interface RunOffer {
  runId: string;
  threadId: string;
  dispatch: number;
}

export interface Append {
  before: LoadedThread;
  after: LoadedThread;
  events: readonly StoredEvent[];
  /** The claim that a worker writes under; the database refuses an old one. */
  fence?: Fence | undefined;
  /** For the reaper: the Run's row, under this attempt, must be past due by the database's clock. */
  due?: Fence | undefined;
  work: { rows: WorkRow[]; gone: string[] };
  answer?: KeyedAnswer | undefined;
  files?: FileChanges | undefined;
  limitedClaim?: LimitedClaim | undefined;
}

/**
 * The result of an append. Only `appended` has stored anything, except that a Run that is `limited` is marked as waiting.
 *
 * - `conflict`: the stream has new events, or the fence or the due date no longer holds. Load and decide again.
 * - `key_taken`: another request has the idempotency key, or is in progress under it.
 * - `refused`: the stream accepts the append, but something beside it does not.
 *
 * `isFinal`: an earlier sending of the same append cannot commit any more.
 */
export type AppendResult =
  | { outcome: 'appended' }
  | { outcome: 'conflict' }
  | { outcome: 'key_taken'; isFinal: boolean }
  | { outcome: 'refused'; reason: Refusal; isFinal: boolean };

/**
 * Why an append was refused.
 *
 * - `files_refused`: a draft, a file or bytes were not as the append needs them. `files_full`: too many attachments.
 * - `folder_moved`: a path of the folder was not as its change needs it. `folder_full`: the folder would be too large.
 * - `quota_full`: the organization would have too many files or bytes.
 * - `limited`: the agent or the organization has as many claimed Runs as it may have. This Run waits until it is let in.
 * - `reference_taken`: another Thread of the same token, Agent and user has the `externalRef` of the new one.
 */
export type Refusal =
  | 'files_refused'
  | 'files_full'
  | 'folder_moved'
  | 'folder_full'
  | 'quota_full'
  | 'limited'
  | 'reference_taken';

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
export async function sendAppend(
  client: PoolClient,
  prepared: Prepared,
  quota: FileQuota,
  timeoutMs?: number,
): Promise<AppendResult> {
  const { append } = prepared;
  const { files, limitedClaim } = append;
  if (files === undefined && limitedClaim === undefined) return appendStream(client, prepared, timeoutMs);
  // The mark of a limited Run is committed too.
  const keeps = (result: AppendResult): boolean =>
    result.outcome === 'appended' || (result.outcome === 'refused' && result.reason === 'limited');
  const work = async (): Promise<AppendResult> => {
    if (limitedClaim && (await refuseBeyondLimits(client, limitedClaim, timeoutMs)))
      return { outcome: 'refused', reason: 'limited', isFinal: true };
    const result = await appendStream(client, prepared, timeoutMs);
    if (result.outcome !== 'appended' || files === undefined) return result;
    const { threadId, summaries } = append.after;
    const organizationId = summaries.thread?.organization_id ?? null;
    const reason = await changeFiles(client, { threadId, organizationId, files, quota }, timeoutMs);
    return reason === null ? result : { outcome: 'refused', reason, isFinal: false };
  };
  const settings = lockOf(append) === undefined ? {} : { settings: OTHERS_WAIT };
  return inTransaction(client, work, { keeps, timeoutMs, ...settings });
}

/** What an append takes a lock of that others wait for, and not only on its own Thread. */
export function lockOf({ files, limitedClaim }: Append): string | undefined {
  return limitedClaim?.organizationId ?? files?.folder?.folderId;
}

/** Takes the limits' locks, for the whole transaction; whether the claim would be one too many, which has its Run wait. */
async function refuseBeyondLimits(client: PoolClient, claim: LimitedClaim, timeoutMs?: number): Promise<boolean> {
  const { runId, dispatch, organizationId, agentId, limits, organizationCap } = claim;
  await client.query({ ...LOCK_LIMITS, ...limit(timeoutMs), values: [limits] });
  const values = [runId, organizationId, agentId, dispatch, organizationCap];
  const { rows } = await client.query<{ limitedBy: string | null }>({
    ...REFUSE_BEYOND_LIMITS,
    ...limit(timeoutMs),
    values,
  });
  return (rows[0]?.limitedBy ?? null) !== null;
}

async function appendStream(
  client: PoolClient,
  { append, rows: eventRows }: Prepared,
  timeoutMs?: number,
): Promise<AppendResult> {
  const statement = isEventsOnly(append) ? appendEvents(append, eventRows) : appendWhole(append, eventRows);
  const { rows } = await client.query<AppendRow>({ ...statement, ...limit(timeoutMs) });
  const [row] = rows;
  if (row?.appended) return { outcome: 'appended' };
  if (row?.keySeen) return { outcome: 'key_taken', isFinal: true };
  // The lock may be that of an earlier sending.
  if (row?.lockHeld === false) return { outcome: 'key_taken', isFinal: false };
  return { outcome: 'conflict' };
}

/** What most appends are: pieces and steps of a Run, which change nothing but the stream. */
function isEventsOnly({ before, after, work, due, answer }: Append): boolean {
  const { state, summaries } = after;
  const sameSummaries = summaries.thread === before.summaries.thread && changedRuns(before, after).length === 0;
  const alone = work.rows.length === 0 && work.gone.length === 0 && !due && !answer;
  return before.version > 0 && state === before.state && sameSummaries && alone;
}

/** Rows that did not change stay the same objects (`foldSummaries`). */
function changedRuns(before: LoadedThread, after: LoadedThread): RunSummary[] {
  return [...after.summaries.runs.values()].filter((run) => before.summaries.runs.get(run.run_id) !== run);
}

/** The events as a parameter of type `jsonb`. */
export type EventRows = string | Buffer;

/** PostgreSQL's binary `jsonb` begins with its version. pg sends a Buffer as binary, and does not encode it once more. */
const JSONB_VERSION = Buffer.of(1);

/** Large texts are written in steps, so that they do not hold the event loop. */
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

function appendEvents({ before, after, fence }: Append, rows: EventRows): QueryConfig {
  const { threadId, version, lastEventId, lastOccurredAt } = after;
  const place = [threadId, before.version, version, lastEventId, lastOccurredAt];
  return { ...APPEND_EVENTS, values: [...place, rows, fence?.runId ?? null, fence?.attempt ?? null] };
}

function appendWhole({ before, after, fence, due, work, answer }: Append, eventRows: EventRows): QueryConfig {
  const threadChanged = after.summaries.thread !== before.summaries.thread;
  const runs = changedRuns(before, after);
  const proof = due ?? fence;
  const values = [
    after.threadId,
    before.version,
    after.version,
    after.lastEventId,
    after.lastOccurredAt,
    after.state === before.state ? null : JSON.stringify(after.state),
    eventRows,
    proof?.runId ?? null,
    proof?.attempt ?? null,
    threadChanged ? JSON.stringify([after.summaries.thread]) : null,
    runs.length > 0 ? JSON.stringify(runs) : null,
    work.rows.length > 0 ? JSON.stringify(work.rows) : null,
    work.gone.length > 0 ? work.gone : null,
    due !== undefined,
    answer?.tokenId ?? null,
    answer?.key ?? null,
    answer?.fingerprint ?? null,
    answer?.status ?? null,
    answer?.body ?? null,
    traceParent(),
  ];
  return { ...APPEND, values };
}
