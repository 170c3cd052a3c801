import type { DatabaseError, Pool, QueryConfig } from 'pg';
import type { StoredEvent, ThreadState, UnknownEvent, WorkRow } from '#domain';
import { DatabaseAway, isDatabaseAway, namedStatement, type NamedStatement } from '#platform';
import type { RunSummary, Summaries, ThreadSummary } from '#projections';

const sql = (fileName: string): NamedStatement => namedStatement(import.meta.dirname, fileName);

const APPEND = sql('append.sql');
const APPEND_EVENTS = sql('append-events.sql');
const LOAD_THREAD = sql('load-thread.sql');
const FIND_APPENDED = sql('find-appended.sql');
const FIND_KEY = sql('find-key.sql');
const READ_LOG_AFTER = sql('read-log-after.sql');
const READ_LOG_BEFORE = sql('read-log-before.sql');
const READ_LOG_PAGE = sql('read-log-page.sql');
const FIND_LOG_START = sql('find-log-start.sql');
const READ_MOVED_THREADS = sql('read-moved-threads.sql');
const READ_TRANSCRIPT = sql('read-transcript.sql');
const READ_STREAM = sql('read-stream.sql');

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

/** An answer as it was kept, with the Thread that it is about. */
export type StoredAnswer = Omit<KeyedAnswer, 'tokenId' | 'key'> & { threadId: string | null };

/** A piece of the public log, oldest first. */
export interface LogPage {
  events: (StoredEvent | UnknownEvent)[];
  /** Where the stream ended when it was read, null when there was more of the log after the page. */
  end: StreamEnd | null;
}

/** The end of a Thread's stream at one moment. */
export interface StreamEnd {
  version: number;
  /** Of its last event, public or not. */
  eventId: string;
  /** Whether no Run was active. */
  idle: boolean;
}

/** A Thread that has moved. */
export interface MovedThread {
  threadId: string;
  /** Null: it was deleted. */
  version: number | null;
}

/** A file that comes into being with the append; its bytes are in the blob store already. */
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
  files?: readonly NewFile[] | undefined;
}

/**
 * What became of an append. `conflict`: the stream moved on, or fence or due date no longer hold: load and decide again.
 * `unknown`: the connection was lost after sending; `ThreadStore.wasAppended` tells.
 */
export type AppendOutcome = 'appended' | 'conflict' | 'key_in_progress' | 'key_seen' | 'unknown';

const UNIQUE_VIOLATION = '23505';
// Serialization failure, deadlock: PostgreSQL has undone the statement for another's sake.
const UNDONE = new Set(['40001', '40P01']);
// Statement timeout or cancellation, lock timeout: undone too, and waiting on would not help.
const TIMED_OUT = new Set(['57014', '55P03']);

/** The event store over one pool: append, read, tail. Throws DatabaseAway where nothing was sent or nothing can be read. */
export class ThreadStore {
  constructor(private readonly pool: Pool) {}

  /** The Thread, or null when it has no stream. */
  async load(threadId: string, timeoutMs?: number): Promise<LoadedThread | null> {
    interface Row {
      version: number;
      lastEventId: string;
      lastOccurredAt: string;
      state: ThreadState;
      thread: ThreadSummary | null;
      runs: RunSummary[] | null;
    }
    const [row] = await this.read<Row>(LOAD_THREAD, [threadId], timeoutMs);
    if (row === undefined) return null;
    const { version, lastEventId, lastOccurredAt, state } = row;
    const runs = new Map((row.runs ?? []).map((run) => [run.run_id, withIsoTimes(run)]));
    const summaries = { thread: row.thread && withIsoTimes(row.thread), runs };
    return { threadId, version, lastEventId, lastOccurredAt, state, summaries };
  }

  /** Sends the append once, and waits so long for the answer. Throws what is neither a conflict nor a lost connection. */
  async append(append: Append, timeoutMs?: number): Promise<AppendOutcome> {
    const client = await this.pool.connect().catch(throwAway);
    let broken = false;
    try {
      const statement = isEventsOnly(append) ? appendEvents(append) : appendWhole(append);
      const { rows } = await client.query<AppendResult>({ ...statement, ...limit(timeoutMs) });
      const [result] = rows;
      if (result?.appended) return 'appended';
      if (result?.keySeen) return 'key_seen';
      return result?.lockHeld === false ? 'key_in_progress' : 'conflict';
    } catch (error) {
      const { code = '', constraint } = error as DatabaseError;
      if (code === UNIQUE_VIOLATION) return constraint === 'idempotency_keys_pkey' ? 'key_seen' : 'conflict';
      if (UNDONE.has(code)) return 'conflict';
      broken = isDatabaseAway(error);
      if (broken) return 'unknown';
      return throwAway(error);
    } finally {
      client.release(broken);
    }
  }

  /** Whether an append whose answer was lost was committed. */
  async wasAppended(threadId: string, version: number, lastEventId: string, timeoutMs?: number): Promise<boolean> {
    const [row] = await this.read<{ found: boolean }>(FIND_APPENDED, [threadId, version, lastEventId], timeoutMs);
    return row?.found ?? false;
  }

  /** The stored answer of an idempotency key, null when there is none. */
  async findKey(tokenId: string, key: string, timeoutMs?: number): Promise<StoredAnswer | null> {
    const [row] = await this.read<StoredAnswer>(FIND_KEY, [tokenId, key], timeoutMs);
    return row ?? null;
  }

  /** The first `limit` public events after the id, oldest first. */
  async readLogAfter(threadId: string, eventId: string, limit: number): Promise<(StoredEvent | UnknownEvent)[]> {
    return this.read(READ_LOG_AFTER, [threadId, eventId, limit]);
  }

  /** The latest `limit` public events, before the id where one is given, oldest first. */
  async readLogBefore(
    threadId: string,
    eventId: string | null,
    limit: number,
  ): Promise<(StoredEvent | UnknownEvent)[]> {
    return this.read(READ_LOG_BEFORE, [threadId, eventId ?? 'Z', limit]);
  }

  /** The first public events after the id, at most `maxEvents` and little more than `maxBytes`; null without the Thread. */
  async readLogPage(
    threadId: string,
    eventId: string,
    { maxEvents, maxBytes, timeoutMs }: { maxEvents: number; maxBytes: number; timeoutMs?: number },
  ): Promise<LogPage | null> {
    type Entry = (StoredEvent | UnknownEvent) & { bytes: number };
    type Row = { streamVersion: number; streamEventId: string; idle: boolean } & (Entry | { id: null });
    const rows = await this.read<Row>(READ_LOG_PAGE, [threadId, eventId, maxEvents, maxBytes], timeoutMs);
    const [first] = rows;
    if (first === undefined) return null;
    const events = rows.filter((row) => row.id !== null);
    const isEnd = events.length < maxEvents && (events.at(-1)?.bytes ?? 0) < maxBytes;
    const end = { version: first.streamVersion, eventId: first.streamEventId, idle: first.idle };
    return { events, end: isEnd ? end : null };
  }

  /** The event id after which the latest `count` public events come; '' is before every id. */
  async findLogStart(threadId: string, count: number): Promise<string> {
    const [row] = await this.read<{ id: string }>(FIND_LOG_START, [threadId, count]);
    return row?.id ?? '';
  }

  /** Of the Threads, by the version that is known of each, those that have moved past it or are gone. */
  async readMovedThreads(known: ReadonlyMap<string, number>, timeoutMs?: number): Promise<MovedThread[]> {
    return this.read(READ_MOVED_THREADS, [[...known.keys()], [...known.values()]], timeoutMs);
  }

  /** Stored messages, decisions and tool events after the version, oldest first: what a harness is given. */
  async readTranscript(threadId: string, afterVersion = 0): Promise<StoredEvent[]> {
    return this.read(READ_TRANSCRIPT, [threadId, afterVersion]);
  }

  /** Everything in the stream after the version, at most `limit` events, oldest first. */
  async readStream(threadId: string, afterVersion: number, limit: number): Promise<(StoredEvent | UnknownEvent)[]> {
    return this.read(READ_STREAM, [threadId, afterVersion, limit]);
  }

  private async read<Row>(statement: NamedStatement, values: unknown[], timeoutMs?: number): Promise<Row[]> {
    try {
      const { rows } = await this.pool.query({ ...statement, values, ...limit(timeoutMs) });
      return rows as Row[];
    } catch (error) {
      return throwAway(error);
    }
  }
}

interface AppendResult {
  /** The last two only where there is a key. */
  appended: boolean;
  lockHeld?: boolean;
  keySeen?: boolean;
}

function limit(timeoutMs: number | undefined): { query_timeout?: number } {
  return timeoutMs === undefined ? {} : { query_timeout: timeoutMs };
}

function throwAway(error: unknown): never {
  const timedOut = TIMED_OUT.has((error as DatabaseError).code ?? '');
  throw timedOut || isDatabaseAway(error) ? new DatabaseAway(error) : error;
}

/** What most appends are: pieces and steps of a Run, which change nothing but the stream. */
function isEventsOnly({ before, after, work, due, answer, files }: Append): boolean {
  const { state, summaries } = after;
  const sameSummaries = summaries.thread === before.summaries.thread && changedRuns(before, after).length === 0;
  const alone = work.rows.length === 0 && work.gone.length === 0 && !due && !answer && !files?.length;
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

function appendWhole({ before, after, events, fence, due, work, answer, files }: Append): QueryConfig {
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
    files?.length ? JSON.stringify(files) : null,
  ];
  return { ...APPEND, values };
}

const TIMES = ['created_at', 'started_at', 'completed_at', 'updated_at'] as const;

/** `row_to_json` writes times with an offset and without trailing zeros; summaries keep them as events do. */
function withIsoTimes<Row extends object>(row: Row): Row {
  const copy = { ...row } as Record<string, unknown>;
  for (const name of TIMES) {
    const value = copy[name];
    if (typeof value === 'string') copy[name] = new Date(value).toISOString();
  }
  return copy as Row;
}
