import type { StoredEvent, ThreadState, WorkItem } from '#domain';
import type { RunSummary } from '#projections';
import type { GroupedStatement } from '#platform';
import { newTransaction, NO_LOCKS, type Locks, type StreamRow, type Tables } from './tables.ts';

type Row = Record<string, unknown>;
interface EventRow {
  version: number;
  id: string;
  type: string;
  schema_version: number;
  data: unknown;
  run_id: string | null;
  attempt: number | null;
  public: boolean;
}

/** append.sql, as it reads. The names stand in the order of its parameters. */
export function append(tables: Tables, values: unknown[]): Row[] {
  const [threadId, before] = values as AppendValues;
  const [proofRunId, proofAttempt, , , , , isDue] = values.slice(7) as MoreValues;
  const [tokenId, key] = values.slice(14) as KeyValues;
  const keyId = key === null ? null : `${tokenId} ${key}`;
  if (keyId !== null && tables.keys.has(keyId)) return [{ lockHeld: true, keySeen: true, appended: false }];
  const refused = [REFUSED];
  if (isDue && !isStillDue(tables, proofRunId, proofAttempt)) return refused;
  const stream = tables.streams.get(threadId);
  if (before === 0) {
    if (stream !== undefined) throw Object.assign(new Error('duplicate key'), { code: '23505' });
  } else {
    if (stream === undefined || !isAt(tables, stream, before)) return refused;
    if (!isDue && !holds(tables, stream, proofRunId, proofAttempt)) return refused;
  }
  tables.write(() => writeAll(tables, values));
  return [{ lockHeld: true, keySeen: false, appended: true }];
}

/** The locks of append.sql: the stream if its version and fence match, and the work items that it writes. */
export function locksOfAppend(tables: Tables, values: unknown[]): Locks {
  const [threadId, before] = values as AppendValues;
  const [runId, attempt, , , work, gone, isDue] = values.slice(7) as MoreValues;
  const stream = tables.streams.get(threadId);
  if (stream === undefined || before === 0 || !isAt(tables, stream, before)) return NO_LOCKS;
  if (isDue ? !isStillDue(tables, runId, attempt) : !holds(tables, stream, runId, attempt))
    return isDue ? { threadId, runIds: [] } : NO_LOCKS;
  const written = (JSON.parse(work ?? '[]') as WorkItem[]).map((row) => row.runId);
  return { threadId, runIds: [...written, ...(gone ?? []), ...(isDue ? [runId!] : [])] };
}

/** The locks of append-events.sql. */
export function locksOfAppendEvents(tables: Tables, values: unknown[]): Locks {
  const [threadId, before] = values as AppendValues;
  const [runId, attempt] = values.slice(6) as [string | null, number | null];
  const stream = tables.streams.get(threadId);
  const writes = stream !== undefined && isAt(tables, stream, before) && holds(tables, stream, runId, attempt);
  return writes ? { threadId, runIds: [] } : NO_LOCKS;
}

function writeAll(tables: Tables, values: unknown[]): void {
  const [threadId, before, version, lastEventId, lastOccurredAt, state, events] = values as AppendValues;
  const [, , thread, runs, work, gone] = values.slice(7) as MoreValues;
  const [tokenId, key, fingerprint, status, body] = values.slice(14) as KeyValues;
  if (before === 0) tables.streams.set(threadId, newStream(state ?? ''));
  const row = tables.streams.get(threadId)!;
  if (state !== null) row.state = state;
  if (thread !== null) row.thread = thread.slice(1, -1);
  for (const run of JSON.parse(runs ?? '[]') as RunSummary[]) row.runs.set(run.run_id, JSON.stringify(run));
  for (const change of JSON.parse(work ?? '[]') as WorkItem[]) writeWork(tables, threadId, change);
  if (!tables.has('the end of a Run leaves its work row')) gone?.forEach((runId) => tables.work.delete(runId));
  if (key !== null && !tables.has('an idempotency key is not stored'))
    tables.keys.set(`${tokenId} ${key}`, {
      fingerprint: fingerprint ?? '',
      threadId,
      status: status ?? 0,
      body: body ?? '',
    });
  store(tables, threadId, { before, version, lastEventId, lastOccurredAt, events, key });
}

type AppendValues = [string, number, number, string, string, string | null, string];
type MoreValues = [
  ...[string | null, number | null, string | null, string | null, string | null],
  ...[string[] | null, boolean],
];
type KeyValues = [string | null, string | null, string | null, number | null, string | null];

/** append-events.sql. */
export function appendEvents(tables: Tables, values: unknown[]): Row[] {
  const [threadId, before, version, lastEventId, lastOccurredAt, events, runId, attempt] = values as [
    ...[string, number, number, string, string, string],
    ...[string | null, number | null],
  ];
  const stream = tables.streams.get(threadId);
  if (stream === undefined || !isAt(tables, stream, before)) return [{ appended: false }];
  if (!holds(tables, stream, runId, attempt)) return [{ appended: false }];
  const claimed = tables.work.get(runId ?? '');
  if (claimed?.state === 'leased' && tables.has('a step renews the lease')) claimed.dueAt = tables.now + 10_000;
  store(tables, threadId, { before, version, lastEventId, lastOccurredAt, events, key: null });
  return [{ appended: true }];
}

/** The members of a group in one transaction (statement-groups.ts). `isLocked` says whether a member would wait. */
export function appendGroup(
  tables: Tables,
  members: readonly GroupedStatement[],
  isLocked: (locks: Locks) => boolean,
): Row[] {
  const made = members.map((member) => {
    const { fence, ...how } = IN_GROUP[member.name]!;
    const values = valuesOf(member);
    const stream = tables.streams.get(values[0] as string);
    if (stream && values[1] !== 0 && tables.has('a group checks neither version nor fence'))
      Object.assign(values, { 1: stream.version, [fence]: null });
    return { ...how, values };
  });
  // An error of one undoes all, so it comes first. Only the creation of a Thread that exists fails.
  tables.transaction = newTransaction('begin');
  for (const { execute, values } of made) if (values[1] === 0) execute(tables, values);
  tables.transaction = null;
  const isLost = (i: number): boolean => i > 0 && i === made.length - 1 && tables.has('a group loses its last member');
  const rows = made.map(({ execute, locksOf, values, refused }, i) => {
    if (isLost(i)) return { ...refused, appended: true };
    const waits = isLocked(locksOf(tables, values)) && !tables.has('a group writes what is locked');
    return waits ? refused : execute(tables, values)[0]!;
  });
  if (tables.has('a group returns its rows in another order')) rows.push(rows.shift()!);
  return tables.has('a group returns that all members were appended')
    ? rows.map((row) => ({ ...row, appended: true }))
    : rows;
}

const REFUSED = { lockHeld: true, keySeen: false, appended: false };

const ids = (text: string): string[] => text.slice(1, -1).split(',').filter(Boolean);
const bool = (text: string): boolean => text === 'true';

/** The statements of groups, with the types of their parameters that are not text, and the place of the Run of the fence. */
const IN_GROUP: Record<string, InGroup> = {
  'append-in-group': {
    ...{ execute: append, locksOf: locksOfAppend, refused: REFUSED, fence: 7 },
    types: { 1: Number, 2: Number, 8: Number, 12: ids, 13: bool, 17: Number, 20: ids },
  },
  'append-events-in-group': {
    ...{ execute: appendEvents, locksOf: locksOfAppendEvents, refused: { appended: false }, fence: 6 },
    types: { 1: Number, 2: Number, 7: Number, 8: bool },
  },
};

/** The parameters of a member, as its statement has them if it is sent alone. */
export function valuesOf({ name, values }: GroupedStatement): unknown[] {
  const { types } = IN_GROUP[name]!;
  return values.map((value, i) => (value === null ? null : (types[i]?.(value) ?? value)));
}

interface InGroup {
  execute: (tables: Tables, values: unknown[]) => Row[];
  locksOf: (tables: Tables, values: unknown[]) => Locks;
  refused: Row;
  fence: number;
  types: Record<number, (text: string) => unknown>;
}

function isAt(tables: Tables, stream: StreamRow, version: number): boolean {
  if (tables.has('an append does not check the version')) return true;
  return stream.version === version || tables.has('an append checks neither version nor fence');
}

function isStillDue(tables: Tables, runId: string | null, attempt: number | null): boolean {
  const row = tables.work.get(runId ?? '');
  if (tables.has('nothing checks that a Run is due')) return true;
  if (row === undefined || row.attempt !== attempt) return false;
  return (row.dueAt ?? Infinity) <= tables.now || (row.workUntil ?? Infinity) <= tables.now;
}

function holds(tables: Tables, stream: StreamRow, runId: string | null, attempt: number | null): boolean {
  if (runId === null || tables.has('an append checks neither version nor fence')) return true;
  const fence = fenceOf(stream.state);
  return fence?.runId === runId && fence.attempt === attempt;
}

/** Most appends are of the same claim and find the state as it was. */
const fences = new Map<string, { runId: string; attempt: number } | undefined>();

function fenceOf(text: string): { runId: string; attempt: number } | undefined {
  if (fences.has(text)) return fences.get(text);
  const state = JSON.parse(text) as ThreadState;
  const current = state.lifecycle === 'none' ? undefined : state.runs[0];
  const fence = current && { runId: current.id, attempt: current.attempt };
  if (fences.size > 20) fences.clear();
  fences.set(text, fence);
  return fence;
}

function newStream(state: string): StreamRow {
  const empty = { version: 0, lastEventId: '', lastOccurredAt: '', events: [] };
  return { ...empty, state, thread: null, runs: new Map() };
}

function writeWork(tables: Tables, threadId: string, change: WorkItem): void {
  const { runId, organizationId, agentId, state, dispatch, attempt, holder, dueInMs, queueMs, workMs } = change;
  const old = tables.work.get(runId);
  const { now } = tables;
  const isShort = state === 'leased' && tables.has('a claim is leased for a quarter of its time');
  const workLeft = old === undefined ? workMs : old.workUntil === null ? old.workLeft : old.workUntil - now;
  tables.work.set(runId, {
    ...{ runId, threadId, organizationId, agentId, state, attempt, holder, queueMs },
    dispatch: tables.has('a work row keeps its old dispatch') ? (old?.dispatch ?? dispatch) : dispatch,
    dueAt: dueInMs === null ? null : now + (isShort ? dueInMs / 4 : dueInMs),
    since: now,
    workLeft,
    limitedBy: tables.has('a place in a limit is kept for ever') ? (old?.limitedBy ?? null) : null,
    queueLeft: null,
    workUntil: state === 'leased' ? (old?.workUntil ?? now + workLeft) : null,
  });
}

interface Written {
  before: number;
  version: number;
  lastEventId: string;
  lastOccurredAt: string;
  events: string;
  key: string | null;
}

function store(tables: Tables, threadId: string, written: Written): void {
  const row = tables.streams.get(threadId)!;
  const { before, version, lastEventId, lastOccurredAt, key } = written;
  Object.assign(row, { version, lastEventId, lastOccurredAt });
  const events = (JSON.parse(written.events) as EventRow[]).map(
    ({ schema_version, run_id, ...event }) =>
      ({ ...event, schemaVersion: schema_version, runId: run_id, threadId, occurredAt: lastOccurredAt }) as StoredEvent,
  );
  row.events.push(...events);
  tables.options.onStored({ threadId, before, events, key, transaction: tables.transaction });
}
