import type { DatabaseError, Pool, PoolClient } from 'pg';
import type { StoredEvent, ThreadState, UnknownEvent } from '#domain';
import {
  BY_KEY,
  DatabaseUnavailable,
  isDatabaseUnavailable,
  namedStatement,
  rethrowUnavailable,
  StatementGroups,
  toRfc3339,
  transact,
  type NamedStatement,
} from '#platform';
import { withRfc3339, type RunSummary, type ThreadSummary } from '#projections';
import {
  eventRows,
  groupedStatement,
  sendAppend,
  type Append,
  type AppendResult,
  type LoadedThread,
  type LostResult,
  type Prepared,
} from './append.ts';
import { countAppend } from './count.ts';
import { KeyedMutex } from './keyed-mutex.ts';
import { StoreReads } from './store-reads.ts';
import type {
  StoredAnswer,
  ThreadAndRun,
  ThreadParts,
  PageWanted,
  ThreadWithLog,
  LogPage,
  LogBounds,
  LogWanted,
  LogWindow,
  MessageBounds,
  MessagePage,
  TranscriptBounds,
  EarlierUsage,
  TranscriptSize,
  ThreadWithTranscript,
  MovedThread,
  DeletedThread,
} from './thread-reads.ts';

const sql = (fileName: string): NamedStatement => namedStatement(import.meta.dirname, fileName);

const LOAD_THREAD = sql('load-thread.sql');
const LOAD_WITH_TRANSCRIPT = sql('load-with-transcript.sql');
const FIND_APPENDED = sql('find-appended.sql');
const FIND_THREAD = sql('find-thread.sql');
const FIND_THREAD_WITH_LOG = sql('find-thread-with-log.sql');
const FIND_KEY = sql('find-key.sql');
const READ_LOG_AFTER = sql('read-log-after.sql');
const READ_LOG_BEFORE = sql('read-log-before.sql');
const READ_LOG_PAGE = sql('read-log-page.sql');
const READ_MESSAGES = sql('read-messages.sql');
const FIND_LOG_START = sql('find-log-start.sql');
const READ_MOVED_THREADS = sql('read-moved-threads.sql');
const READ_TRANSCRIPT = sql('read-transcript.sql');
const READ_STOPPED_TEXTS = sql('read-stopped-texts.sql');
const READ_TRANSCRIPT_BYTES = sql('read-transcript-bytes.sql');
const READ_EARLIER_USAGE = sql('read-earlier-usage.sql');
const READ_STREAM = sql('read-stream.sql');
const PURGE_KEYS = sql('purge-keys.sql');
const LOCK_STREAM = sql('lock-stream.sql');
const DELETE_STREAM = sql('delete-stream.sql');
const DELETE_THREAD = sql('delete-thread.sql');

const UNIQUE_VIOLATION = '23505';
/** Results by violated constraint or index. Any other violation means that the stream has new events. */
const VIOLATED: Record<string, AppendResult> = {
  idempotency_keys_pkey: { outcome: 'key_taken', isFinal: true },
  thread_summaries_external_ref: { outcome: 'refused', reason: 'reference_taken', isFinal: true },
};
// Serialization failure and deadlock: PostgreSQL rolled the statement back in favour of another one.
const UNDONE = new Set(['40001', '40P01']);

const PURGE_BATCH = 1_000;

/** Two groups keep PostgreSQL busy while one is being answered. */
const APPEND_LANES = 2;
const READ_LANES = 2;
const APPEND_MEMBERS = 64;

/** Bytes. A transcript of at most this size is read before memory is reserved for it, because every Run takes far more. */
const SMALL_TRANSCRIPT = 32 * 1024;

const BY_KEY_MS = BY_KEY.query_timeout;

/** Bytes. A page that is parsed with its Thread, because that takes less than a millisecond. */
const SMALL_PAGE = 32 * 1024;

const NO_BOUND = Number.MAX_SAFE_INTEGER;

/** The event store over one pool: append, read, tail. Throws DatabaseUnavailable if nothing was sent or nothing can be read. */
export class ThreadStore {
  /** Appends whose hooks have the same lock take turns. */
  private readonly mutex = new KeyedMutex();

  private readonly appends: StatementGroups;
  private readonly reads: StoreReads;

  /** The most groups of appends, and of reads, in flight. 0 sends each statement alone. */
  constructor(
    private readonly pool: Pool,
    { lanes = APPEND_LANES, readLanes = READ_LANES }: { lanes?: number; readLanes?: number } = {},
  ) {
    this.appends = new StatementGroups(pool, { lanes, members: APPEND_MEMBERS });
    this.reads = new StoreReads(pool, readLanes);
  }

  /** Returns the Thread, null if it has no stream. */
  async load(threadId: string, timeoutMs?: number): Promise<LoadedThread | null> {
    const [row] = await this.reads.read<ThreadRow>(LOAD_THREAD, [threadId], { timeoutMs, gathers: true });
    return row === undefined ? null : loadedThread(threadId, row);
  }

  /** Returns the Thread and its transcript, as `measureTranscript` and `readTranscript` do; null if it has no stream. */
  async loadWithTranscript(
    threadId: string,
    { events, bytes, characters, note }: TranscriptBounds,
    timeoutMs?: number,
  ): Promise<ThreadWithTranscript | null> {
    type Row = ThreadRow & { small: { size: TranscriptSize; events: StoredEvent[] | null } | null };
    const values = [threadId, bytes, characters, events, note, SMALL_TRANSCRIPT];
    const [row] = await this.reads.read<Row>(LOAD_WITH_TRANSCRIPT, values, { timeoutMs, gathers: true });
    if (row === undefined) return null;
    const small = row.small && { ...row.small, events: row.small.events && row.small.events.map(inTime) };
    return { thread: loadedThread(threadId, row), small };
  }

  /** Returns the Thread and, on request, its most recent Run, whose final output may be large. Null if there is no Thread. */
  async findThread(
    threadId: string,
    { withRun = false, withDecisions = false }: ThreadParts = {},
  ): Promise<ThreadAndRun | null> {
    const gathers = !withRun;
    const [row] = await this.reads.read<ThreadAndRun>(FIND_THREAD, [threadId, withRun, withDecisions], {
      timeoutMs: BY_KEY_MS,
      gathers,
    });
    return row === undefined ? null : foundThread(row);
  }

  /** Returns the Thread and a page of its log, as `readLogPage` does; null if there is no Thread. */
  async findThreadWithLog(
    threadId: string,
    { after, maxEvents, shorterThan, withDecisions = false }: PageWanted,
  ): Promise<ThreadWithLog | null> {
    type Row = ThreadAndRun & { page: PageRow[] | null };
    const values = [threadId, false, withDecisions, after, maxEvents, SMALL_PAGE, shorterThan ?? null];
    const [row] = await this.reads.read<Row>(FIND_THREAD_WITH_LOG, values, { timeoutMs: BY_KEY_MS, gathers: true });
    return row === undefined
      ? null
      : { ...foundThread(row), page: row.page && logPage(row.page.map(inTime), maxEvents) };
  }

  /** Sends the append once, and waits `timeoutMs` for the result. Throws errors other than conflicts and lost connections. */
  async append(append: Append, timeoutMs?: number): Promise<AppendResult | LostResult> {
    return countAppend(append, () => this.appendInTurn(append, timeoutMs));
  }

  private async appendInTurn(append: Append, timeoutMs?: number): Promise<AppendResult | LostResult> {
    const lock = append.hook?.lock;
    if (lock === undefined) return this.appendNow(append, timeoutMs);
    const until = performance.now() + (timeoutMs ?? Infinity);
    return this.mutex.run(lock, async (waited) => {
      // A claim made too late would be lost immediately, because its lease counts from before it was sent.
      if (waited && performance.now() >= until)
        throw new DatabaseUnavailable(new Error('timed out waiting for earlier appends'));
      return this.appendNow(append, timeoutMs);
    });
  }

  private async appendNow(append: Append, timeoutMs = Infinity): Promise<AppendResult | LostResult> {
    const until = performance.now() + timeoutMs;
    const prepared = { append, rows: await eventRows(append.events) };
    const statement = groupedStatement(prepared);
    const result = statement && (await this.appends.send(append.after.threadId, statement, timeoutMs));
    if (result === 'unknown') return { outcome: 'unknown' };
    // Otherwise it conflicts, would have waited, was not sent, or shared a group with a failure. Alone, it gets its own result.
    if (Array.isArray(result) && result[0]?.['appended'] === true) return { outcome: 'appended' };
    return this.appendAlone(prepared, until === Infinity ? undefined : Math.max(1, until - performance.now()));
  }

  private async appendAlone(prepared: Prepared, timeoutMs?: number): Promise<AppendResult | LostResult> {
    const client = await this.pool.connect().catch(rethrowUnavailable);
    let broken = false;
    try {
      return await sendAppend(client, prepared, timeoutMs);
    } catch (error) {
      const { code = '', constraint } = error as DatabaseError;
      if (code === UNIQUE_VIOLATION) return VIOLATED[constraint ?? ''] ?? { outcome: 'conflict' };
      if (UNDONE.has(code)) return { outcome: 'conflict' };
      broken = isDatabaseUnavailable(error);
      if (broken) return { outcome: 'unknown' };
      return rethrowUnavailable(error);
    } finally {
      client.release(broken);
    }
  }

  /** Returns whether an append whose result was lost was committed. */
  async wasAppended(threadId: string, version: number, lastEventId: string, timeoutMs?: number): Promise<boolean> {
    const [row] = await this.reads.read<{ found: boolean }>(FIND_APPENDED, [threadId, version, lastEventId], {
      timeoutMs,
    });
    return row?.found ?? false;
  }

  /** Returns the stored answer of an idempotency key, null if there is none. */
  async findKey(tokenId: string, key: string, timeoutMs?: number): Promise<StoredAnswer | null> {
    const [row] = await this.reads.read<StoredAnswer>(FIND_KEY, [tokenId, key], { timeoutMs, gathers: true });
    return row ?? null;
  }

  /** Deletes idempotency keys older than `maxAgeMs`. Returns whether there may be more. */
  async purgeKeys(maxAgeMs: number): Promise<boolean> {
    const [row] = await this.reads.read<{ count: number }>(PURGE_KEYS, [maxAgeMs, PURGE_BATCH]);
    return row?.count === PURGE_BATCH;
  }

  /** Returns the first public events after the id, oldest first. */
  async readLogAfter(threadId: string, eventId: string, wanted: LogWanted): Promise<LogWindow> {
    return this.readWindow(READ_LOG_AFTER, threadId, eventId, wanted);
  }

  /** Returns the latest public events, before the id if one is given, oldest first. */
  async readLogBefore(threadId: string, eventId: string | null, wanted: LogWanted): Promise<LogWindow> {
    return this.readWindow(READ_LOG_BEFORE, threadId, eventId ?? 'Z', wanted);
  }

  private async readWindow(
    statement: NamedStatement,
    threadId: string,
    eventId: string,
    { maxEvents, maxBytes = NO_BOUND, withDecisions = false }: LogWanted,
  ): Promise<LogWindow> {
    type Row = (StoredEvent | UnknownEvent) & { found: number };
    const rows = await this.reads.readEvents<Row>(statement, [threadId, eventId, maxEvents, maxBytes, withDecisions]);
    const events = rows.map(({ found: _, ...event }) => event);
    return { events, isCut: events.length < (rows[0]?.found ?? 0) };
  }

  /**
   * Returns the first public events and decisions after the id. The last one may exceed `maxBytes`. Null if there is no Thread.
   */
  async readLogPage(
    threadId: string,
    eventId: string,
    { maxEvents, maxBytes = NO_BOUND, timeoutMs }: LogBounds & { timeoutMs?: number },
  ): Promise<LogPage | null> {
    const values = [threadId, eventId, maxEvents, maxBytes];
    const rows = await this.reads.readEvents<PageRow>(READ_LOG_PAGE, values, { timeoutMs });
    return logPage(rows, maxEvents);
  }

  /**
   * Returns the events of the newest Runs, only of those queued before the id if one is given. Reads no deltas, except those of steps
   * that are running or were stopped. Null if there is no Thread.
   */
  async readMessages(threadId: string, beforeId: string | null, bounds: MessageBounds): Promise<MessagePage | null> {
    type Event = (StoredEvent | UnknownEvent) & { truncated: boolean };
    type Row = { lastEventId: string; nextId: string | null } & (Event | { id: null });
    const values = [threadId, beforeId ?? 'Z', bounds.maxRuns, bounds.maxBytes];
    const rows = await this.reads.readEvents<Row>(READ_MESSAGES, values);
    const [first] = rows;
    if (first === undefined) return null;
    const { lastEventId, nextId } = first;
    const events = rows.filter((row) => row.id !== null);
    return { events, nextId, truncated: events.some(({ truncated }) => truncated), lastEventId };
  }

  /** Returns the event id after which the latest `count` public events come; '' is before every id. */
  async findLogStart(
    threadId: string,
    count: number,
    { withDecisions = false }: Pick<LogWanted, 'withDecisions'> = {},
  ): Promise<string> {
    const [row] = await this.reads.read<{ id: string }>(FIND_LOG_START, [threadId, count, withDecisions]);
    return row?.id ?? '';
  }

  /** Returns the Threads that have another version than the known one, or are deleted. */
  async readMovedThreads(known: ReadonlyMap<string, number>, timeoutMs?: number): Promise<MovedThread[]> {
    return this.reads.read(READ_MOVED_THREADS, [[...known.keys()], [...known.values()].map(String)], { timeoutMs });
  }

  /**
   * Returns the events for a harness: stored messages, decisions and tool events, oldest first. Starts of calls have only their
   * id. A `run.cancelled` has only the visible text of the message that it cut, and is left out if there is none.
   */
  async readTranscript(
    threadId: string,
    { events: most, bytes, characters, note }: TranscriptBounds,
    { hasStops }: Pick<TranscriptSize, 'hasStops'>,
  ): Promise<StoredEvent[]> {
    const cuts = [threadId, bytes, characters] as const;
    const newestFirst = await this.reads.readEvents<StoredEvent>(READ_TRANSCRIPT, [...cuts, most, note]);
    // Few Threads have stopped texts, so most Runs save a statement.
    const stops = hasStops ? await this.reads.readEvents<StoredEvent>(READ_STOPPED_TEXTS, [...cuts, note]) : [];
    const from = newestFirst.length === most ? newestFirst.at(-1)!.version : 0;
    const events = newestFirst.reverse();
    if (stops.length === 0) return events;
    return [...events, ...stops.filter(({ version }) => version > from)].sort((a, b) => a.version - b.version);
  }

  /** Returns what a Run used in its steps before the version, one entry for each model. */
  readEarlierUsage(threadId: string, runId: string, version: number): Promise<EarlierUsage[]> {
    return this.reads.read<EarlierUsage>(READ_EARLIER_USAGE, [threadId, runId, version]);
  }

  /** Returns the size of what `readTranscript` reads, without reading it. */
  async measureTranscript(threadId: string, { events, bytes, characters }: TranscriptBounds): Promise<TranscriptSize> {
    const [found] = await this.reads.read<TranscriptSize>(READ_TRANSCRIPT_BYTES, [threadId, bytes, characters, events]);
    return found!;
  }

  /** Returns all events of the stream after the version, oldest first. */
  async readStream(
    threadId: string,
    afterVersion: number,
    { maxEvents, maxBytes = NO_BOUND }: LogBounds,
  ): Promise<(StoredEvent | UnknownEvent)[]> {
    return this.reads.readEvents(READ_STREAM, [threadId, afterVersion, maxEvents, maxBytes]);
  }

  /**
   * Deletes a Thread: events, state, summaries, work items, files and the bodies of its stored answers. Returns the end of its
   * stream and the blobs that no file refers to any more, null if there is no such Thread. `within` shares the transaction, and
   * may run again. Throws DatabaseUnavailable; the Thread may be deleted then.
   */
  async deleteThread(threadId: string, within?: (client: PoolClient) => Promise<void>): Promise<DeletedThread | null> {
    for (;;) {
      try {
        return await this.deleteNow(threadId, within);
      } catch (error) {
        // Another Thread in the same folder was taking over files of this one, and locked them in another order.
        if (!UNDONE.has((error as DatabaseError).code ?? '')) return rethrowUnavailable(error);
      }
    }
  }

  private deleteNow(threadId: string, within?: (client: PoolClient) => Promise<void>): Promise<DeletedThread | null> {
    return transact(this.pool, async (client) => {
      // Runs first and alone, because a statement that waits for a concurrent append would not see its events.
      const locked = await client.query<LockedStream>({ ...LOCK_STREAM, values: [threadId] });
      const [stream] = locked.rows;
      if (stream === undefined) return null;
      await within?.(client);
      await client.query({ ...DELETE_STREAM, values: [threadId, stream.version] });
      const { rows } = await client.query<{ key: string }>({ ...DELETE_THREAD, values: [threadId, stream.runIds] });
      return { version: stream.version, blobKeys: rows.map(({ key }) => key) };
    });
  }
}

interface ThreadRow {
  version: number;
  lastEventId: string;
  lastOccurredAt: string;
  state: ThreadState;
  thread: ThreadSummary | null;
  runs: RunSummary[] | null;
}

function loadedThread(threadId: string, row: ThreadRow): LoadedThread {
  const { version, lastEventId, lastOccurredAt, state, thread, runs } = row;
  const byId = new Map((runs ?? []).map((run) => [run.run_id, withRfc3339(run)]));
  const summaries = { thread: thread && withRfc3339(thread), runs: byId };
  return { threadId, version, lastEventId, lastOccurredAt, state, summaries };
}

const foundThread = ({ thread, run, ...more }: ThreadAndRun): ThreadAndRun => {
  return { ...more, thread: withRfc3339(thread), run: run && withRfc3339(run) };
};

/** An entry of a page, or only the end of the stream. */
type PageRow = { streamVersion: number; streamEventId: string; idle: boolean } & (
  | ((StoredEvent | UnknownEvent) & { found: number })
  | { id: null; occurredAt: null }
);

function logPage(rows: readonly PageRow[], maxEvents: number): LogPage | null {
  const [first] = rows;
  if (first === undefined) return null;
  const events = rows.filter((row) => row.id !== null);
  const isEnd = events.length < maxEvents && events.length === (events[0]?.found ?? 0);
  const end = { version: first.streamVersion, eventId: first.streamEventId, idle: first.idle };
  return { events, end: isEnd ? end : null };
}

/** Converts the time of an event that was read as JSON. */
function inTime<Event extends { occurredAt: string | null }>(event: Event): Event {
  return { ...event, occurredAt: event.occurredAt && toRfc3339(event.occurredAt) };
}

interface LockedStream {
  version: number;
  runIds: string[];
}
