import { eventTypesWith, openStepAfter, type StoredEvent } from '#domain';
import { append, appendEvents, locksOfAppend, locksOfAppendEvents } from './append-statement.ts';
import {
  findLimitedOrganizations,
  admitLimitedRuns,
  limitNewcomers,
  locksOfRefusal,
  refuseBeyondLimits,
} from './limit-statements.ts';
import { NO_LOCKS, type Locks, type Tables, type StoredWorkItem } from './tables.ts';

type Row = Record<string, unknown>;
/** The rows of a statement, or the number of changed rows if it returns none. */
export type Answer = Row[] | number;
type Execute = (tables: Tables, values: unknown[]) => Answer;

/** What each statement of the code under simulation does, by the name of its file. */
const NAMED: Record<string, Execute> = {
  append,
  'append-events': appendEvents,
  // `deleteThread` does all of it at the commit.
  'delete-stream': () => [{ delete_stream: '' }],
  'load-thread': (tables, [threadId]) => loadThread(tables, threadId as string),
  'load-with-transcript': (tables, [threadId]) => {
    const events = readTranscript(tables, threadId as string).toReversed();
    const hasStops = readStoppedTexts(tables, threadId as string).length > 0;
    const small = { size: { bytes: 0, hasStops }, events: hasStops ? null : events };
    return loadThread(tables, threadId as string).map((row) => ({ ...row, small }));
  },
  'find-appended': (tables, [threadId, version, id]) => {
    const events = tables.streams.get(threadId as string)?.events ?? [];
    return [{ found: events.some((event) => event.version === version && event.id === id) }];
  },
  'find-key': (tables, [tokenId, key]) => {
    const row = tables.keys.get(`${tokenId as string} ${key as string}`);
    return row ? [{ ...row, fileId: null }] : [];
  },
  'read-transcript': (tables, [threadId]) => readTranscript(tables, threadId as string),
  'read-transcript-bytes': (tables, [threadId]) => [
    { bytes: 0, hasStops: readStoppedTexts(tables, threadId as string).length > 0 },
  ],
  'read-stopped-texts': (tables, [threadId]) => readStoppedTexts(tables, threadId as string),
  'find-due-runs': (tables, values) => findDueRuns(tables, values as [boolean, string[], number]),
  'find-open-step': (tables, [threadId, runId, attempt]) => {
    const row = tables.streams.get(threadId as string);
    if (row === undefined) return [];
    const ofClaim = row.events.filter((event) => event.runId === runId && event.attempt === attempt);
    const last = ofClaim.findLast(({ type }) =>
      /^(run\.(claimed|requeued)|assistant\.|tool\.(started|completed))/.test(type),
    );
    const openTool = last?.type === 'tool.started' ? last.data.title : null;
    return [{ version: row.version, openStep: openStepAfter(ofClaim) ?? null, openTool }];
  },
  'renew-leases': (tables, values) => renewLeases(tables, values as [string, string[], number[], number]),
  'find-held-claims': (tables, [holder]) =>
    [...tables.work.values()]
      .filter((row) => row.holder === holder && row.state === 'leased')
      .map(({ runId, attempt }) => ({ runId, attempt })),
  'skip-delay': (tables, [runId]) => {
    const row = delayedRow(tables, runId as string);
    if (row === null) return [];
    makeReady(tables, row);
    return [{ runId: row.runId, threadId: row.threadId, dispatch: row.dispatch }];
  },
  'find-ready-runs': (tables, [limit]) => findReadyRuns(tables, limit as number),
  'find-slots-in-use': findSlotsInUse,
  'wake-delayed-runs': (tables) => {
    if (tables.has('delayed Runs are never woken')) return [{ woken: 0, nextInMs: null }];
    const delayed = [...tables.work.values()].filter(({ state, dueAt }) => state === 'delayed' && dueAt !== null);
    const due = delayed.filter(({ dueAt, runId }) => dueAt! <= tables.now && !tables.isLocked(runId));
    due.forEach((row) => makeReady(tables, row));
    const next = Math.min(...delayed.map(({ dueAt }) => dueAt!).filter((dueAt) => dueAt > tables.now));
    return [{ woken: due.length, nextInMs: next <= tables.now + 1_000 ? Math.ceil(next - tables.now) : null }];
  },
  'read-controls': (tables, [queueKey, outageKey, toolPauseKey]) => {
    const { now } = tables;
    const isHeld = (key: unknown): boolean => (tables.pauses.get(key as string) ?? null) !== null;
    const slots = [...tables.workers.values()].filter(({ seenAt }) => seenAt > now - 10_000).map((row) => row.slots);
    const rows = [...tables.work.values()];
    const crowded = rows.some((row) => row.state === 'ready' && row.since < now - 250 && row.limitedBy === null);
    const limited = rows.some(({ state }) => state === 'limited');
    const held = { paused: isHeld(queueKey), unavailable: isHeld(outageKey), pausedByTool: isHeld(toolPauseKey) };
    return [{ ...held, slots: slots.reduce((a, b) => a + b, 0), crowded, limited }];
  },
  'refuse-beyond-limits': refuseBeyondLimits,
  'find-limited-organizations': findLimitedOrganizations,
  'admit-limited-runs': admitLimitedRuns,
  'limit-newcomers': limitNewcomers,
  'resume-queue': (tables, [queue, others]) => {
    const since = tables.pauses.get(queue as string) ?? null;
    if (since === null) return [{ ended: false }];
    tables.pauses.set(queue as string, null);
    const until = Math.min(tables.now, ...(others as string[]).map((other) => tables.pauses.get(other) ?? Infinity));
    for (const row of tables.work.values()) {
      if (row.state !== 'ready' || row.dueAt === null || tables.isLocked(row.runId)) continue;
      row.dueAt += Math.max(0, until - Math.max(since, row.since));
    }
    tables.options.onTouched();
    return [{ ended: true }];
  },
};

/** The few that have no file: by how they begin. */
const UNNAMED: [string, Execute][] = [
  [
    'insert into queue_controls',
    (tables, [queue]) => {
      if ((tables.pauses.get(queue as string) ?? null) !== null) return 0;
      tables.pauses.set(queue as string, tables.now);
      return 1;
    },
  ],
  [
    'update workers set seen_at',
    (tables, [holder]) => {
      const row = tables.workers.get(holder as string);
      if (row) row.seenAt = tables.now;
      return row ? 1 : 0;
    },
  ],
  [
    'insert into workers',
    (tables, [holder, slots]) => {
      tables.workers.set(holder as string, { slots: slots as number, seenAt: tables.now });
      return 1;
    },
  ],
  ['delete from workers where holder', (tables, [holder]) => Number(tables.workers.delete(holder as string))],
  ['select from run_work where run_id', (tables, [runId]) => (tables.work.has(runId as string) ? [{}] : [])],
  [
    'delete from workers where seen_at',
    (tables) => {
      let count = 0;
      for (const [holder, { seenAt }] of tables.workers)
        if (seenAt < tables.now - 60_000) count += Number(tables.workers.delete(holder));
      return count;
    },
  ],
];

/** The names or first words of all statements with an effect or a result, including those of the server. */
export const ANSWERED = [
  ...Object.keys(NAMED),
  ...UNNAMED.map(([start]) => start),
  ...[
    'group',
    'lock-limits',
    'lock-stream',
    'delete-thread',
    'select pg_try_advisory_lock',
    'select pg_advisory_unlock',
  ],
];

/** Executes one statement, all or nothing. Throws what PostgreSQL would. */
export function execute(tables: Tables, name: string | undefined, text: string, values: unknown[]): Answer {
  const statement = name === undefined ? UNNAMED.find(([start]) => text.startsWith(start))?.[1] : NAMED[name];
  if (statement === undefined) throw new Error(`The simulation does not know the statement ${name ?? text}.`);
  return statement(tables, values);
}

/** The rows that a statement locks until its transaction ends. It waits for rows that another transaction has locked. */
const LOCKS: Record<string, (tables: Tables, values: unknown[]) => Locks> = {
  append: locksOfAppend,
  'append-events': locksOfAppendEvents,
  'refuse-beyond-limits': locksOfRefusal,
  'lock-stream': (_tables, [threadId]) => ({ threadId: threadId as string, runIds: [] }),
  'delete-thread': (_tables, [threadId, runIds]) => ({ threadId: threadId as string, runIds: runIds as string[] }),
  'renew-leases': (tables, values) => {
    return { threadId: null, runIds: heldRows(tables, values as Renewal).map(({ runId }) => runId) };
  },
  'skip-delay': (tables, [runId]) => {
    const row = delayedRow(tables, runId as string);
    return row === null ? NO_LOCKS : { threadId: null, runIds: [row.runId] };
  },
};

export function locksOf(tables: Tables, name: string | undefined, values: unknown[]): Locks {
  return name === undefined ? NO_LOCKS : (LOCKS[name]?.(tables, values) ?? NO_LOCKS);
}

/** delete-thread.sql: everything of the Thread but its keys, which lose their bodies. */
export function deleteThread(tables: Tables, threadId: string): void {
  tables.streams.delete(threadId);
  for (const [runId, row] of tables.work)
    if (row.threadId === threadId && !tables.has('a delete leaves the work rows')) tables.work.delete(runId);
  for (const row of tables.keys.values()) if (row.threadId === threadId) row.body = '';
  tables.options.onDeleted(threadId);
}

function loadThread(tables: Tables, threadId: string): Row[] {
  const row = tables.streams.get(threadId);
  if (row === undefined) return [];
  const state = tables.stateOf(threadId);
  const live = state.lifecycle === 'none' ? [] : state.runs.map(({ id }) => row.runs.get(id));
  const runs = live.filter((run) => run !== undefined).map((run) => JSON.parse(run) as unknown);
  const { version, lastEventId, lastOccurredAt, thread } = row;
  const found = { version, lastEventId, lastOccurredAt, state, thread: thread && (JSON.parse(thread) as unknown) };
  return [{ ...found, runs: runs.length === 0 ? null : runs }];
}

/** Newest first. Nothing here is old: all of a simulation is far less than what is read whole. */
function readTranscript(tables: Tables, threadId: string): Row[] {
  return (tables.streams.get(threadId)?.events ?? [])
    .filter(({ type }) => TRANSCRIBED.includes(type))
    .filter(({ type, runId }) => !isResultOfEndedRun(tables, threadId, { type, runId }))
    .toReversed()
    .map((event) => ({ ...event, data: transcribed(event) }));
}

const TRANSCRIBED: readonly string[] = eventTypesWith('inTranscript');

/** Of each cancelled Run the deltas since its last claim, requeue or message, newest Run first. */
function readStoppedTexts(tables: Tables, threadId: string): Row[] {
  if (tables.has('a transcript lacks the text that a stop cut')) return [];
  const texts = new Map<string | null, string>();
  const rows: Row[] = [];
  for (const event of tables.streams.get(threadId)?.events ?? []) {
    const { type, runId } = event;
    if (type === 'assistant.text_added') texts.set(runId, (texts.get(runId) ?? '') + event.data.text);
    else if (type === 'assistant.message_added' || (isClaimOrRequeue(type) && !tables.has('void text counts as seen')))
      texts.delete(runId);
    else if (type === 'run.cancelled' && texts.has(runId)) rows.push({ ...event, data: { text: texts.get(runId) } });
  }
  return rows.reverse();
}

const isClaimOrRequeue = (type: string): boolean => type === 'run.claimed' || type === 'run.requeued';

function isResultOfEndedRun(tables: Tables, threadId: string, event: Pick<StoredEvent, 'type' | 'runId'>): boolean {
  if (event.type !== 'tool.completed' || !tables.has('a transcript lacks the results of ended Runs')) return false;
  const state = tables.stateOf(threadId);
  return state.lifecycle === 'none' || state.runs.every(({ id }) => id !== event.runId);
}

/** The start of a call is its id, and summaries are for people. */
function transcribed({ type, data }: StoredEvent): unknown {
  if (type === 'tool.started') return { toolCallId: data.toolCallId };
  if (type !== 'tool.completed') return data;
  const { summary: _, ...rest } = data;
  return rest;
}

function makeReady(tables: Tables, row: StoredWorkItem): void {
  Object.assign(row, { state: 'ready', since: tables.now, dueAt: tables.now + row.queueMs });
  tables.options.onTouched();
}

function delayedRow({ work, now }: Tables, runId: string): StoredWorkItem | null {
  const row = work.get(runId);
  const waits = row?.state === 'delayed' && row.attempt === 0 && row.dispatch === 1;
  return waits && (row.dueAt ?? 0) > now ? row : null;
}

function findDueRuns(tables: Tables, [paused, setAside, limit]: [boolean, string[], number]): Row[] {
  const { now } = tables;
  const isOver = (row: StoredWorkItem): boolean => row.workUntil !== null && row.workUntil <= now;
  const isUnchecked = tables.has('nothing checks that a Run is due');
  const isDue = ({ dueAt, state }: StoredWorkItem): boolean =>
    (isUnchecked && state === 'leased') ||
    (dueAt !== null && dueAt <= now && (state === 'leased' || state === 'waiting' || (state === 'ready' && !paused)));
  return [...tables.work.values()]
    .filter((row) => (isDue(row) || (row.holder !== null && isOver(row))) && !setAside.includes(row.runId))
    .toSorted((a, b) => (a.dueAt ?? Infinity) - (b.dueAt ?? Infinity))
    .slice(0, limit)
    .map((row) => {
      const { runId, threadId, state, dispatch, attempt, holder } = row;
      return { runId, threadId, state, dispatch, attempt, holder, workOver: isOver(row) };
    });
}

type Renewal = [holder: string, runIds: string[], attempts: number[], leaseMs: number];

function renewLeases(tables: Tables, renewal: Renewal): Row[] {
  const held = heldRows(tables, renewal);
  for (const row of held) row.dueAt = tables.now + renewal[3];
  tables.options.onTouched();
  return held.map(({ runId, attempt }) => ({ runId, attempt }));
}

function heldRows({ work, now }: Tables, [holder, runIds, attempts]: Renewal): StoredWorkItem[] {
  return runIds.flatMap((runId, i) => {
    const row = work.get(runId);
    if (row === undefined || row.state !== 'leased') return [];
    return row.attempt === attempts[i] && row.holder === holder && (row.dueAt ?? 0) > now ? [row] : [];
  });
}

const organizationOf = ({ organizationId }: StoredWorkItem): string => organizationId;

function findSlotsInUse(tables: Tables): Row[] {
  if (tables.has('no slot-seconds are counted')) return [];
  const { work, now } = tables;
  const leased = [...work.values()].filter(({ state }) => state === 'leased');
  return [...new Set(leased.map(organizationOf))].map((organizationId) => {
    const own = leased.filter((row) => row.organizationId === organizationId);
    const ms = own.reduce((sum, { since }) => sum + now - since, 0);
    return { organizationId, slots: own.length, seconds: ms / 1_000 };
  });
}

/** First those of organizations without a slot, then by turns over the organizations, each a share of the limit. */
function findReadyRuns(tables: Tables, limit: number): Row[] {
  const byOrganization = new Map<string, StoredWorkItem[]>();
  for (const row of tables.work.values()) {
    if (row.state !== 'ready') continue;
    if (row.dispatch > 1 && tables.has('the dispatcher does not see what was queued again')) continue;
    byOrganization.set(row.organizationId, [...(byOrganization.get(row.organizationId) ?? []), row]);
  }
  const holders = new Set([...tables.work.values()].filter(({ state }) => state === 'leased').map(organizationOf));
  const isLater = ({ hasSlot, turn }: { hasSlot: boolean; turn: number }): boolean => hasSlot || turn > 1;
  const share = Math.max(1, Math.floor((2 * limit) / Math.max(1, byOrganization.size)));
  const found = [...byOrganization].flatMap(([organizationId, rows]) =>
    rows
      .toSorted((a, b) => a.since - b.since)
      .slice(0, share)
      .map(({ runId, threadId, dispatch, since }, i) => {
        const turn = i + 1;
        const hasSlot = holders.has(organizationId) || tables.has('organizations without a slot are taken for others');
        return { since, row: { runId, threadId, dispatch, organizationId, hasSlot, turn, maybeMore: turn === share } };
      }),
  );
  return found
    .toSorted((a, b) => Number(isLater(a.row)) - Number(isLater(b.row)) || a.row.turn - b.row.turn || a.since - b.since)
    .slice(0, limit)
    .map(({ row }) => row);
}
