import type { PoolClient, QueryConfig } from 'pg';
import type { StoredEvent, ThreadState, WorkRow } from '#domain';
import { inTransaction, namedStatement, traceParent, type NamedStatement } from '#platform';
import type { RunSummary, Summaries } from '#projections';

const sql = (fileName: string): NamedStatement => namedStatement(import.meta.dirname, fileName);

const APPEND = sql('append.sql');
const APPEND_EVENTS = sql('append-events.sql');
const CHANGE_FILES = sql('change-files.sql');
const CHANGE_FOLDER = sql('change-folder.sql');
const LOCK_FOLDER = sql('lock-folder.sql');
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

/** The answer to keep under an idempotency key, in the same commit as its effect (decisions, section 6). */
export interface KeyedAnswer {
  tokenId: string;
  key: string;
  fingerprint: string;
  status: number;
  body: string;
}

/** What an append does to files, all or none of it: else nothing is appended. */
export interface FileChanges {
  added?: readonly NewFile[];
  claimed?: DraftClaim;
  /** Files of the Thread that go; their bytes become the sweeper's. */
  removed?: readonly string[];
  /** The bytes that each of `removed` must still have. */
  removedSha256?: string;
  /** How many attachments the Thread may have then. */
  maxAttachments?: number;
  folder?: FolderChanges | undefined;
}

/** What an append does to the folder that its Thread's agent works in, all or none of it. */
export interface FolderChanges {
  /** The Thread, or its agent, for a pet. */
  folderId: string;
  /** Of each path one. */
  changes: readonly FolderChange[];
  /** How many files there may be in the folder then, and how many bytes in all. Who only removes is not held to them. */
  maxFiles: number;
  maxBytes: number;
}

/** One path of a folder; `basedOn` is the blob that was there, null for nothing: else the folder has moved on. */
export type FolderChange =
  | { does: 'add'; path: string; basedOn: null; file: NewFile }
  /** A file of the Thread has the bytes of `file` from then on, and stays what it is. */
  | { does: 'replace'; path: string; basedOn: string; file: NewFile }
  /** A file of another Thread stays that Thread's, and `file` has its place. */
  | { does: 'take_over'; path: string; basedOn: string; file: NewFile }
  /** A file of the Thread goes. */
  | { does: 'remove'; path: string; basedOn: string; file: null }
  /** A file of another Thread stays that Thread's, without a place. */
  | { does: 'give_up'; path: string; basedOn: string; file: null };

/** Drafts that are attached: all must be their owner's, of the Thread's agent, and no older than this, milliseconds. */
export interface DraftClaim {
  fileIds: readonly string[];
  agentId: string;
  ownerPersonId: string | null;
  ownerServiceTokenId: string | null;
  maxAgeMs: number;
}

/** A file that comes into being with the append; its bytes were put for it. */
export interface NewFile {
  id: string;
  run_id: string | null;
  kind: 'attachment' | 'artifact';
  name: string;
  mime_type: string | null;
  size: number;
  sha256: string;
  blob_key: string;
}

/** A claim whose Run may be too many: it is checked under the locks of the limits that there are. */
export interface LimitedClaim extends RunOffer {
  organizationId: string;
  agentId: string;
  /** Ids of the organization and the agent, in this order, as far as they have a limit. */
  limits: readonly string[];
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
 * What became of an append. `conflict`: the stream moved on, or fence or due date no longer hold: load and decide again.
 * `files_refused`: a draft, a file or bytes were not as the append needs them; `files_full`: too many attachments.
 * `folder_moved`: a path of the folder was not as its change needs it; `folder_full`: the folder would be too large. `limited`:
 * as many Runs of the agent or the organization are claimed as may be; this one waits until it is let in. `reference_taken`:
 * another Thread of the same token, Agent and user has the `externalRef` of the new one.
 * `unknown`: the connection was lost after sending; `ThreadStore.wasAppended` tells.
 */
export type AppendOutcome = FinalOutcome | 'unknown';
/** An outcome that is known. */
export type FinalOutcome =
  | 'appended'
  | 'conflict'
  | 'key_in_progress'
  | 'key_seen'
  | 'files_refused'
  | 'files_full'
  | 'folder_moved'
  | 'folder_full'
  | 'limited'
  | 'reference_taken';

interface AppendResult {
  /** The last two only where there is a key. */
  appended: boolean;
  lockHeld?: boolean;
  keySeen?: boolean;
}

/**
 * Sends it once, and waits so long for each answer. What is not 'appended' has changed nothing, but that a Run that is `limited`
 * waits. Throws what pg throws.
 */
export async function sendAppend(client: PoolClient, append: Append, timeoutMs?: number): Promise<FinalOutcome> {
  const { files, limitedClaim } = append;
  if (files === undefined && limitedClaim === undefined) return appendStream(client, append, timeoutMs);
  // That a Run waits for its turn is kept too.
  const keeps = (outcome: FinalOutcome): boolean => outcome === 'appended' || outcome === 'limited';
  const work = async (): Promise<FinalOutcome> => {
    if (limitedClaim && (await refuseBeyondLimits(client, limitedClaim, timeoutMs))) return 'limited';
    return files === undefined ? appendStream(client, append, timeoutMs) : appendWithFiles(client, append, timeoutMs);
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
  const { runId, dispatch, organizationId, agentId, limits } = claim;
  await client.query({ ...LOCK_LIMITS, ...limit(timeoutMs), values: [limits] });
  const values = [runId, organizationId, agentId, dispatch];
  const { rows } = await client.query<{ limitedBy: string | null }>({
    ...REFUSE_BEYOND_LIMITS,
    ...limit(timeoutMs),
    values,
  });
  return (rows[0]?.limitedBy ?? null) !== null;
}

async function appendStream(client: PoolClient, append: Append, timeoutMs?: number): Promise<FinalOutcome> {
  const statement = isEventsOnly(append) ? appendEvents(append) : appendWhole(append);
  const { rows } = await client.query<AppendResult>({ ...statement, ...limit(timeoutMs) });
  const [result] = rows;
  if (result?.appended) return 'appended';
  if (result?.keySeen) return 'key_seen';
  return result?.lockHeld === false ? 'key_in_progress' : 'conflict';
}

async function appendWithFiles(client: PoolClient, append: Append, timeoutMs?: number): Promise<FinalOutcome> {
  const outcome = await appendStream(client, append, timeoutMs);
  if (outcome !== 'appended') return outcome;
  const { claimed, removed = [], removedSha256 = null, maxAttachments = Infinity, folder } = append.files ?? {};
  const refused = folder && (await changeFolder(client, append.after.threadId, folder, timeoutMs));
  if (refused) return refused;
  const added = [...(append.files?.added ?? []), ...(folder ? placedFiles(folder) : [])];
  const {
    fileIds = [],
    agentId = null,
    ownerPersonId = null,
    ownerServiceTokenId = null,
    maxAgeMs = 0,
  } = claimed ?? {};
  const owner = [agentId, ownerPersonId, ownerServiceTokenId];
  const blobKeys = added.map(({ blob_key }) => blob_key);
  const changes = [append.after.threadId, JSON.stringify(added), fileIds, ...owner, removed, maxAgeMs, blobKeys];
  const values = [...changes, removedSha256];
  const { rows } = await client.query<ChangedFiles>({ ...CHANGE_FILES, ...limit(timeoutMs), values });
  const done = rows[0]!;
  const asWanted = done.added === added.length && done.claimed === fileIds.length && done.removed === removed.length;
  if (!asWanted) return 'files_refused';
  return done.attachments > maxAttachments ? 'files_full' : 'appended';
}

/** Makes room in the folder for what comes in; why that cannot be, null where it can. */
async function changeFolder(
  client: PoolClient,
  threadId: string,
  { folderId, changes, maxFiles, maxBytes }: FolderChanges,
  timeoutMs?: number,
): Promise<'folder_moved' | 'folder_full' | null> {
  await client.query({ ...LOCK_FOLDER, ...limit(timeoutMs), values: [folderId] });
  const rows = changes.map(({ file, ...change }) => ({ ...file, ...change }));
  const blobKeys = changes.flatMap(({ does, file }) => (does === 'replace' ? [file.blob_key] : []));
  const values = [threadId, folderId, JSON.stringify(rows), blobKeys];
  const changed = await client.query<ChangedFolder>({ ...CHANGE_FOLDER, ...limit(timeoutMs), values });
  const { done, files, bytes } = changed.rows[0]!;
  if (done !== changes.length) return 'folder_moved';
  const isHeld = changes.some(({ file }) => file !== null);
  return isHeld && (files > maxFiles || bytes > maxBytes) ? 'folder_full' : null;
}

interface ChangedFolder {
  done: number;
  files: number;
  bytes: number;
}

/** The rows that come into the folder. */
function placedFiles({ folderId, changes }: FolderChanges): (NewFile & { folder_id: string; path: string })[] {
  return changes.flatMap(({ does, path, file }) =>
    does === 'add' || does === 'take_over' ? [{ ...file, folder_id: folderId, path }] : [],
  );
}

interface ChangedFiles {
  added: number;
  claimed: number;
  removed: number;
  attachments: number;
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

function eventRows(events: readonly StoredEvent[]): string {
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
  return JSON.stringify(rows);
}

function appendEvents({ before, after, events, fence }: Append): QueryConfig {
  const { threadId, version, lastEventId, lastOccurredAt } = after;
  const place = [threadId, before.version, version, lastEventId, lastOccurredAt];
  return { ...APPEND_EVENTS, values: [...place, eventRows(events), fence?.runId ?? null, fence?.attempt ?? null] };
}

function appendWhole({ before, after, events, fence, due, work, answer }: Append): QueryConfig {
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
    eventRows(events),
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

export function limit(timeoutMs: number | undefined): { query_timeout?: number } {
  return timeoutMs === undefined ? {} : { query_timeout: timeoutMs };
}
