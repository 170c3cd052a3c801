import pg, { type ClientBase, type QueryArrayConfig } from 'pg';
import { eventTypes, type StoredEvent, type ThreadEventType, type ThreadState, type UnknownEvent } from '#domain';
import { namedStatement, pauseIfLong, toRfc3339, type NamedStatement } from '#platform';
import { readRunSummary, readThreadSummary, withColumns } from './columns.ts';
import type { RunSummary } from './run-summary.ts';
import type { ThreadSummary } from './thread-summary.ts';

const sql = (fileName: string): NamedStatement => namedStatement(import.meta.dirname, fileName);

const READ_STREAMS = sql('read-streams.sql');
const READ_EVENTS = sql('read-events.sql');
const READ_THREAD_SUMMARIES = withColumns(sql('read-thread-summaries.sql'));
const READ_RUN_SUMMARIES = withColumns(sql('read-run-summaries.sql'));

/** How many events a page has, about. More would hold snapshots and memory for longer and save nothing. */
export const PAGE_EVENTS = 4_000;

/** Where a stream stands. */
export interface Head {
  version: number;
  lastEventId: string;
  lastOccurredAt: string;
}

/** The rows that are stored beside a stream and have to equal its fold; there may be none, or more than there should be. */
export interface StoredRows {
  threadId: string;
  stream: (Head & { state: ThreadState }) | null;
  thread: ThreadSummary | null;
  runs: Map<string, RunSummary>;
  /** Where the events say that the stream stands; null without events, and without a state row. */
  head: Head | null;
}

/** What a page has of one Thread; a Thread with no row in `streams` may have some of it all the same. */
export type OnEvents = (threadId: string, events: readonly (StoredEvent | UnknownEvent)[]) => void;

/** How to read events: how many at once, about, and without which types. */
export interface EventReader {
  pageEvents: number;
  without: readonly ThreadEventType[];
  onEvents: OnEvents;
}

export interface Page {
  threadIds: Iterable<string>;
  /** Decodes them, a while in each turn of the event loop: the outputs of many Runs can be large. */
  rowsOf(threadId: string): Promise<StoredRows>;
  /** The last thread id of the page; the next one begins at `after` it. */
  last: string;
  /** Whether there are no more streams; what a page without streams still has are rows that should not exist. */
  isEnd: boolean;
}

/** Byte by byte, every thread id is between these two. */
export const FIRST = '';
const LAST = '~';

/** The lowest text above the id. */
export const after = (threadId: string): string => `${threadId}\u0001`;

/**
 * Reads a page, from `first` on: the rows by thread id, and the events through `onEvents`, those of one Thread in order and
 * in one or more calls. The caller's transaction decides how consistent that is.
 */
export async function readPage(client: ClientBase, first: string, events: EventReader): Promise<Page> {
  const streams = await query(client, READ_STREAMS, [first, events.pageEvents]);
  const last = streams.at(-1)?.[0] ?? LAST;
  const page = await readRange(client, [first, last], streams, events);
  return { ...page, last, isEnd: streams.length === 0 };
}

/** All there is of one Thread. */
export async function readThread(client: ClientBase, threadId: string, events: EventReader): Promise<StoredRows> {
  const [stream] = await query(client, READ_STREAMS, [threadId, 1]);
  const page = await readRange(client, [threadId, threadId], stream?.[0] === threadId ? [stream] : [], events);
  return page.rowsOf(threadId);
}

type Range = [first: string, last: string];

/** Rows of a Thread as they came: most are decoded only to be compared and forgotten, one Thread at a time. */
interface RawRows {
  stream?: Column[];
  thread?: Column[];
  runs: Column[][];
}

async function readRange(client: ClientBase, range: Range, streams: Column[][], { without, onEvents }: EventReader) {
  const raw = new Map<string, RawRows>();
  const rawOf = (threadId: Column | undefined): RawRows => {
    const rows = raw.get(text(threadId)) ?? { runs: [] };
    raw.set(text(threadId), rows);
    return rows;
  };
  for (const row of streams) rawOf(row[0]).stream = row;
  for (const row of await query(client, READ_THREAD_SUMMARIES, range)) rawOf(row[0]).thread = row;
  for (const row of await query(client, READ_RUN_SUMMARIES, range)) rawOf(row[1]).runs.push(row);
  await readEvents(client, range, without, (threadId, events) => {
    rawOf(threadId);
    onEvents(threadId, events);
  });
  return { threadIds: raw.keys(), rowsOf: (threadId: string) => toStoredRows(threadId, raw.get(threadId)) };
}

/** Hands on the events of each Thread together, some thousand at a time, so that a Thread of any length fits in memory. */
async function readEvents(
  client: ClientBase,
  range: Range,
  without: readonly ThreadEventType[],
  onEvents: OnEvents,
): Promise<void> {
  let events: (StoredEvent | UnknownEvent)[] = [];
  const handOn = (): void => {
    if (events[0] !== undefined) onEvents(events[0].threadId, events);
    events = [];
  };
  await eachRow(client, READ_EVENTS, [...range, without, DATA_NOT_FOLDED], (row) => {
    const isOfAnother = events[0] !== undefined && events[0].threadId !== row[0];
    if (isOfAnother || events.length === EVENTS_TOGETHER) handOn();
    events.push(toEvent(row));
  });
  handOn();
}

const EVENTS_TOGETHER = 2_000;

/** The events that no fold looks at: deltas and other things that are only shown, most of what a stream holds. */
export const NOT_FOLDED = eventTypes(({ folds }) => folds === 'nothing');

/** The events whose data no fold looks at. The data are large. */
export const DATA_NOT_FOLDED = eventTypes(({ folds }) => folds !== 'data');

const NO_DATA = {};

type Column = string | null;

/** Values as PostgreSQL sends them: making pg's objects and types took longer than all the folding. */
const AS_TEXT = { getTypeParser: () => (value: string | Buffer) => value } as NonNullable<QueryArrayConfig['types']>;

async function query(client: ClientBase, statement: NamedStatement, values: unknown[]): Promise<Column[][]> {
  const { rows } = await client.query<Column[]>({ ...statement, values, rowMode: 'array', types: AS_TEXT });
  return rows;
}

/** Row by row as they come in, keeping none: collecting them first left a third of the time to the garbage collector. */
function eachRow(
  client: ClientBase,
  statement: NamedStatement,
  values: unknown[],
  act: (row: Column[]) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const config = { ...statement, values, rowMode: 'array', types: AS_TEXT };
    // A callback, because with a timeout set pg tells errors to nobody else; with one it keeps the rows.
    const rows = new pg.Query<Column[], unknown[]>(config, (error) => (error ? reject(error) : resolve()));
    rows.on('row', (row, result) => {
      if (result) result.rows.length = 0;
      try {
        act(row);
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error))); // thrown from here it would be the socket's to handle
      }
    });
    client.query(rows);
  });
}

const text = (column: Column | undefined): string => column ?? '';
// `infinity` stays as it is: no stream says that.
const time = (column: Column | undefined): string => (column?.endsWith('+00') ? toRfc3339(column) : text(column));
const json = (column: Column | undefined): unknown => (column ? JSON.parse(column) : null);

async function toStoredRows(threadId: string, raw: RawRows | undefined): Promise<StoredRows> {
  const { stream, thread, runs: rawRuns = [] } = raw ?? {};
  const runs = new Map<string, RunSummary>();
  for (const run of rawRuns) {
    runs.set(text(run[0]), readRunSummary(run));
    await pauseIfLong();
  }
  return {
    threadId,
    stream: stream ? { ...toHead(stream, 1), state: json(stream[4]) as ThreadState } : null,
    thread: thread ? readThreadSummary(thread) : null,
    runs,
    head: stream?.[5] ? toHead(stream, 5) : null,
  };
}

function toHead(row: Column[], at: number): Head {
  return { version: Number(row[at]), lastEventId: text(row[at + 1]), lastOccurredAt: time(row[at + 2]) };
}

function toEvent(row: Column[]): StoredEvent | UnknownEvent {
  const [threadId, version, id, type, schemaVersion, data, runId, attempt, isPublic, occurredAt] = row;
  return {
    threadId: text(threadId),
    version: Number(version),
    id: text(id),
    type: text(type),
    schemaVersion: Number(schemaVersion),
    data: data ? (JSON.parse(data) as StoredEvent['data']) : NO_DATA,
    runId: runId ?? null,
    attempt: attempt ? Number(attempt) : null,
    public: isPublic === 't',
    occurredAt: time(occurredAt),
  };
}
