import { append, appendEvents } from './append-statement.ts';
import { refuseBeyondLimits, findLimitedOrganizations, letInLimitedRuns, limitNewcomers } from './limit-statements.ts';
import type { Tables, WorkRowStored } from './tables.ts';

type Row = Record<string, unknown>;
type Execute = (tables: Tables, values: unknown[]) => Row[];

/** What each statement of the code under simulation does, by the name of its file. */
const NAMED: Record<string, Execute> = {
  append,
  'append-events': appendEvents,
  'load-thread': (tables, [threadId]) => {
    const row = tables.streams.get(threadId as string);
    if (row === undefined) return [];
    const state = tables.stateOf(threadId as string);
    const live = state.lifecycle === 'none' ? [] : state.runs.map(({ id }) => row.runs.get(id));
    const runs = live.filter((run) => run !== undefined).map((run) => JSON.parse(run) as unknown);
    const { version, lastEventId, lastOccurredAt, thread } = row;
    return [{ version, lastEventId, lastOccurredAt, state, thread: thread && JSON.parse(thread), runs }];
  },
  'find-appended': (tables, [threadId, version, id]) => {
    const events = tables.streams.get(threadId as string)?.events ?? [];
    return [{ found: events.some((event) => event.version === version && event.id === id) }];
  },
  'find-key': (tables, [tokenId, key]) => {
    const row = tables.keys.get(`${tokenId as string} ${key as string}`);
    return row ? [{ ...row, fileId: null }] : [];
  },
  // Nothing here is old: all of a simulation is far less than what is read whole.
  'read-transcript': (tables, [threadId]) =>
    (tables.streams.get(threadId as string)?.events ?? [])
      .filter(({ type }) => TRANSCRIBED.includes(type))
      .toReversed()
      .map(({ data, ...event }) => {
        const { toolCallId } = data as { toolCallId?: string };
        return { ...event, data: event.type === 'tool.started' ? { toolCallId } : data };
      }),
  'find-due-runs': (tables, values) => findDueRuns(tables, values as [boolean, string[], number]),
  'renew-leases': (tables, values) => renewLeases(tables, values as [string, string[], number[], number]),
  'find-held-claims': (tables, [holder]) =>
    [...tables.work.values()]
      .filter((row) => row.holder === holder && row.state === 'leased')
      .map(({ runId, attempt }) => ({ runId, attempt })),
  'hasten-run': (tables, [runId]) => {
    const row = tables.work.get(runId as string);
    const waits = row?.state === 'delayed' && row.attempt === 0 && row.dispatch === 1;
    if (!waits || (row.dueAt ?? 0) <= tables.now) return [];
    makeReady(tables, row);
    return [{ runId: row.runId, threadId: row.threadId, dispatch: row.dispatch }];
  },
  'find-ready-runs': (tables, [limit]) => findReadyRuns(tables, limit as number),
  'wake-delayed-runs': (tables) => {
    if (tables.has('delayed Runs are never woken')) return [{ woken: 0, nextInMs: null }];
    const delayed = [...tables.work.values()].filter(({ state, dueAt }) => state === 'delayed' && dueAt !== null);
    const due = delayed.filter(({ dueAt, runId }) => dueAt! <= tables.now && !tables.isLocked(runId));
    due.forEach((row) => makeReady(tables, row));
    const next = Math.min(...delayed.map(({ dueAt }) => dueAt!).filter((dueAt) => dueAt > tables.now));
    return [{ woken: due.length, nextInMs: next <= tables.now + 1_000 ? Math.ceil(next - tables.now) : null }];
  },
  'read-controls': (tables, [queue, away]) => {
    const { now } = tables;
    const isHeld = (key: unknown): boolean => (tables.pauses.get(key as string) ?? null) !== null;
    const slots = [...tables.workers.values()].filter(({ seenAt }) => seenAt > now - 10_000).map((row) => row.slots);
    const rows = [...tables.work.values()];
    const crowded = rows.some((row) => row.state === 'ready' && row.since < now - 250 && row.limitedBy === null);
    const limited = rows.some(({ state }) => state === 'limited');
    return [{ paused: isHeld(queue), away: isHeld(away), slots: slots.reduce((a, b) => a + b, 0), crowded, limited }];
  },
  'refuse-beyond-limits': refuseBeyondLimits,
  'find-limited-organizations': findLimitedOrganizations,
  'let-in-limited-runs': letInLimitedRuns,
  'limit-newcomers': limitNewcomers,
  'resume-queue': (tables, [queue, other]) => {
    const since = tables.pauses.get(queue as string) ?? null;
    if (since === null) return [];
    tables.pauses.set(queue as string, null);
    const until = Math.min(tables.now, tables.pauses.get(other as string) ?? Infinity);
    for (const row of tables.work.values()) {
      if (row.state !== 'ready' || row.dueAt === null || tables.isLocked(row.runId)) continue;
      row.dueAt += Math.max(0, until - Math.max(since, row.since));
    }
    tables.options.onTouched();
    return [];
  },
};

/** The few that have no file: by how they begin. */
const UNNAMED: [string, Execute][] = [
  [
    'insert into queue_controls',
    (tables, [queue]) => {
      tables.pauses.set(queue as string, tables.pauses.get(queue as string) ?? tables.now);
      return [];
    },
  ],
  [
    'insert into workers',
    (tables, [holder, slots]) => {
      tables.workers.set(holder as string, { slots: slots as number, seenAt: tables.now });
      return [];
    },
  ],
  [
    'delete from workers where holder',
    (tables, [holder]) => {
      tables.workers.delete(holder as string);
      return [];
    },
  ],
  ['select from run_work where run_id', (tables, [runId]) => (tables.work.has(runId as string) ? [{}] : [])],
  [
    'delete from workers where seen_at',
    (tables) => {
      for (const [holder, { seenAt }] of tables.workers)
        if (seenAt < tables.now - 60_000) tables.workers.delete(holder);
      return [];
    },
  ],
];

/** Executes one statement, all or nothing. Throws what PostgreSQL would. */
export function execute(tables: Tables, name: string | undefined, text: string, values: unknown[]): Row[] {
  const statement = name === undefined ? UNNAMED.find(([start]) => text.startsWith(start))?.[1] : NAMED[name];
  if (statement === undefined) throw new Error(`The simulation does not know the statement ${name ?? text}.`);
  return statement(tables, values);
}

/** delete-thread.sql: everything of the Thread but its keys, which lose their bodies. */
export function deleteThread(tables: Tables, threadId: string): void {
  tables.streams.delete(threadId);
  for (const [runId, row] of tables.work)
    if (row.threadId === threadId && !tables.has('a delete leaves the work rows')) tables.work.delete(runId);
  for (const row of tables.keys.values()) if (row.threadId === threadId) row.body = '';
  tables.options.onDeleted(threadId);
}

const TRANSCRIBED: readonly string[] = [
  'message.added',
  'assistant.message_added',
  'tool.confirmation_decided',
  'tool.started',
  'tool.completed',
];

function makeReady(tables: Tables, row: WorkRowStored): void {
  Object.assign(row, { state: 'ready', since: tables.now, dueAt: tables.now + row.queueMs });
  tables.options.onTouched();
}

function findDueRuns(tables: Tables, [paused, setAside, limit]: [boolean, string[], number]): Row[] {
  const { now } = tables;
  const isOver = (row: WorkRowStored): boolean => row.workUntil !== null && row.workUntil <= now;
  const isUnchecked = tables.has('nothing checks that a Run is due');
  const isDue = ({ dueAt, state }: WorkRowStored): boolean =>
    (isUnchecked && state === 'leased') ||
    (dueAt !== null && dueAt <= now && (state === 'leased' || state === 'waiting' || (state === 'ready' && !paused)));
  return [...tables.work.values()]
    .filter((row) => (isDue(row) || (row.holder !== null && isOver(row))) && !setAside.includes(row.runId))
    .toSorted((a, b) => (a.dueAt ?? Infinity) - (b.dueAt ?? Infinity))
    .slice(0, limit)
    .map((row) => {
      const { runId, threadId, state, dispatch, attempt } = row;
      return { runId, threadId, state, dispatch, attempt, workOver: isOver(row) };
    });
}

type Renewal = [holder: string, runIds: string[], attempts: number[], leaseMs: number];

function renewLeases(tables: Tables, [holder, runIds, attempts, leaseMs]: Renewal): Row[] {
  const { now } = tables;
  const renewed = runIds.flatMap((runId, i) => {
    const row = tables.work.get(runId);
    const attempt = attempts[i]!;
    if (row === undefined || row.state !== 'leased') return [];
    if (row.attempt !== attempt || row.holder !== holder || (row.dueAt ?? 0) <= now) return [];
    row.dueAt = now + leaseMs;
    return [{ runId, attempt }];
  });
  tables.options.onTouched();
  return renewed;
}

/** By turns over the organizations, each a share of the limit. */
function findReadyRuns(tables: Tables, limit: number): Row[] {
  const byOrganization = new Map<string, WorkRowStored[]>();
  for (const row of tables.work.values()) {
    if (row.state !== 'ready') continue;
    if (row.dispatch > 1 && tables.has('the dispatcher does not see what was queued again')) continue;
    byOrganization.set(row.organizationId, [...(byOrganization.get(row.organizationId) ?? []), row]);
  }
  const share = Math.max(1, Math.floor((2 * limit) / Math.max(1, byOrganization.size)));
  const found = [...byOrganization].flatMap(([organizationId, rows]) =>
    rows
      .toSorted((a, b) => a.since - b.since)
      .slice(0, share)
      .map(({ runId, threadId, dispatch, since }, i) => {
        return { runId, threadId, dispatch, organizationId, turn: i + 1, maybeMore: i + 1 === share, since };
      }),
  );
  return found.toSorted((a, b) => a.turn - b.turn || a.since - b.since).slice(0, limit);
}
