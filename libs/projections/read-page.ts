import pg, { type ClientBase, type QueryArrayConfig } from 'pg';
import {
  BOUNDS,
  eventTypes,
  type StoredEvent,
  type ThreadEventType,
  type ThreadState,
  type UnknownEvent,
} from '#domain';
import { namedStatement, pauseIfLong, toRfc3339, type NamedStatement } from '#platform';
import { readRunSummary, readThreadSummary, withColumns } from './columns.ts';
import type { RunSummary } from './run-summary.ts';
import type { ThreadSummary } from './thread-summary.ts';

const sql = (fileName: string): NamedStatement => namedStatement(import.meta.dirname, fileName);

const READ_STREAMS = sql('read-streams.sql');
const READ_EVENTS = sql('read-events.sql');
const READ_THREAD_SUMMARIES = withColumns(sql('read-thread-summaries.sql'));
const READ_RUN_SUMMARIES = withColumns(sql('read-run-summaries.sql'));

/** The approximate number of events in a page. More would hold snapshots and memory for longer without a gain. */
export const PAGE_EVENTS = 4_000;

/** The end of a stream. */
export interface Head {
  version: number;
  lastEventId: string;
  lastOccurredAt: string;
}

/** The stored rows that must equal the fold of a stream. Rows may be missing, and there may be too many. */
export interface StoredRows {
  threadId: string;
  stream: (Head & { state: ThreadState }) | null;
  thread: ThreadSummary | null;
  runs: Map<string, RunSummary>;
  /** The end of the stream according to its events; null without events or without a state row. */
  head: Head | null;
}

/** Receives events of one Thread of a page. The Thread may have no row in `streams`. */
export type OnEvents = (threadId: string, events: readonly (StoredEvent | UnknownEvent)[]) => void;

/** How to read events: the approximate number in a page, and the types to skip. */
export interface EventReader {
  pageEvents: number;
  without: readonly ThreadEventType[];
  onEvents: OnEvents;
}

export interface Page {
  threadIds: Iterable<string>;
  /** Decodes the rows of a Thread. Yields to the event loop regularly, because the outputs of many Runs can be large. */
  rowsOf(threadId: string): Promise<StoredRows>;
  /** The last thread id of the page; the next one begins at `after` it. */
  last: string;
  /** Whether there are no more streams. A page without streams can still have rows that should not exist. */
  isEnd: boolean;
}

/** Every thread id is between these two in byte order. */
export const FIRST = '';
const LAST = '~';

/** The lowest text above the id. */
export const after = (threadId: string): string => `${threadId}\u0001`;

/**
 * Reads a page that begins at `first`: the rows by thread id, and the events through `onEvents`. The events of one Thread
 * come in order, in one or more calls. The caller's transaction decides the consistency.
 */
export async function readPage(client: ClientBase, first: string, events: EventReader): Promise<Page> {
  const streams = await query(client, READ_STREAMS, [first, events.pageEvents]);
  const last = streams.at(-1)?.[0] ?? LAST;
  const page = await readRange(client, [first, last], streams, events);
  return { ...page, last, isEnd: streams.length === 0 };
}

/** Reads the page of one Thread. */
export async function readThread(client: ClientBase, threadId: string, events: EventReader): Promise<StoredRows> {
  const [stream] = await query(client, READ_STREAMS, [threadId, 1]);
  const page = await readRange(client, [threadId, threadId], stream?.[0] === threadId ? [stream] : [], events);
  return page.rowsOf(threadId);
}

type Range = [first: string, last: string];

/** The undecoded rows of the Threads. They are decoded one Thread at a time, because most are only compared and then dropped. */
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

/** Passes on the events Thread by Thread, some thousand in a batch, so that a Thread of any length fits in memory. */
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

const EVENTS_TOGETHER = BOUNDS.transcripts.folded.value;

/** The types of events that no fold uses: deltas and others that are only shown. They are most of a stream. */
export const NOT_FOLDED = eventTypes(({ folds }) => folds === 'nothing');

/** The types of events whose data no fold uses. The data are large. */
export const DATA_NOT_FOLDED = eventTypes(({ folds }) => folds !== 'data');

const NO_DATA = {};

type Column = string | null;

/** Leaves values as PostgreSQL sends them. To make pg's objects and types took longer than all folding. */
const AS_TEXT = { getTypeParser: () => (value: string | Buffer) => value } as NonNullable<QueryArrayConfig['types']>;

async function query(client: ClientBase, statement: NamedStatement, values: unknown[]): Promise<Column[][]> {
  const { rows } = await client.query<Column[]>({ ...statement, values, rowMode: 'array', types: AS_TEXT });
  return rows;
}

/** Passes on each row as it arrives, and keeps none. With collected rows, garbage collection took a third of the time. */
function eachRow(
  client: ClientBase,
  statement: NamedStatement,
  values: unknown[],
  act: (row: Column[]) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const config = { ...statement, values, rowMode: 'array', types: AS_TEXT };
    // A callback, because with a timeout pg reports errors only to it. An effect is that pg keeps the rows.
    const rows = new pg.Query<Column[], unknown[]>(config, (error) => (error ? reject(error) : resolve()));
    rows.on('row', (row, result) => {
      if (result) result.rows.length = 0;
      try {
        act(row);
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error))); // A throw from here would reach the socket.
      }
    });
    client.query(rows);
  });
}

const text = (column: Column | undefined): string => column ?? '';
// `infinity` stays unchanged, because no stream contains it.
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
