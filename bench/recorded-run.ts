import pg from 'pg';
import { evolve, workChanges, type StoredEvent } from '#domain';
import { absentThread, ThreadStore, type Fence, type KeyedAnswer, type LoadedThread } from '#event-store';
import { foldSummaries } from '#projections';
import { LEASE_MS, recordingStore, type Statement } from './threads.ts';

/** The appends of one real Thread, oldest first, as Spool sent them; for the floors to send with ids of their own. */
export interface RecordedRun {
  statements: Statement[];
  /** The types of all events, in order. */
  types: string[];
  /** What stands in the statements for the ids of another Thread, in the order in which `fill` takes them. */
  ids: string[];
}

/** Reads a Thread back and sees which appends made it: one a transaction. */
export async function readAppends(databaseUrl: string, threadId: string): Promise<RecordedRun> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1, options: '-c timezone=UTC' });
  try {
    const events = (await new ThreadStore(pool).readStream(threadId, 0, { maxEvents: 10_000 })) as StoredEvent[];
    const { rows: transactions } = await pool.query<{ version: number; id: string }>(
      'select version, transaction_id::text as id from events where thread_id = $1',
      [threadId],
    );
    const transactionOf = new Map(transactions.map(({ version, id }) => [version, id]));
    const appends = new Map<string, StoredEvent[]>();
    for (const event of events) {
      const id = transactionOf.get(event.version) ?? '';
      appends.set(id, [...(appends.get(id) ?? []), event]);
    }
    const { rows: keys } = await pool.query<KeyedAnswer>(
      `select token_id as "tokenId", key, fingerprint, status, body from idempotency_keys where thread_id = $1`,
      [threadId],
    );
    const statements = await replay(threadId, [...appends.values()], keys[0]);
    const runIds = new Set(events.map(({ runId }) => runId).filter((runId) => runId !== null));
    const types = events.map(({ type }) => type);
    return { statements, types, ids: [threadId, ...runIds, ...keys.map(({ key }) => key)] };
  } finally {
    await pool.end();
  }
}

/** What Spool sends for these appends, by its own code. */
async function replay(threadId: string, appends: StoredEvent[][], answer?: KeyedAnswer): Promise<Statement[]> {
  const { store, statements } = recordingStore();
  let before: LoadedThread = absentThread(threadId);
  for (const events of appends) {
    const last = events.at(-1);
    const state = events.reduce(evolve, before.state);
    const after: LoadedThread = {
      threadId,
      version: before.version + events.length,
      lastEventId: last?.id ?? null,
      lastOccurredAt: last?.occurredAt ?? null,
      state,
      summaries: foldSummaries(before.summaries, events),
    };
    const work = workChanges(before.state, state, LEASE_MS);
    const isFirst = before.version === 0;
    await store.append({
      before,
      after,
      events,
      work,
      fence: fenceOf(before, events),
      answer: isFirst ? answer : undefined,
    });
    before = after;
  }
  return statements;
}

/** A worker's append carries the claim under which it was made; the claim itself has none yet. */
function fenceOf({ state }: LoadedThread, events: StoredEvent[]): Fence | undefined {
  const by = events.find(({ attempt }) => attempt !== null);
  const current = state.lifecycle === 'none' ? undefined : state.runs[0];
  if (by === undefined || by.runId === null || by.attempt === null || by.attempt !== current?.attempt) return undefined;
  return { runId: by.runId, attempt: by.attempt };
}

/** The statement with other ids in it. */
export function template({ name, text, values }: Statement, ids: string[]): (fresh: string[]) => Statement {
  const fill = fillable(values, ids);
  return (fresh) => ({ name, text, values: fill(fresh) as unknown[] });
}

/** Cuts a value at the ids, once; what is left to do for each request is to join the pieces with other ids. */
export function fillable(value: unknown, ids: string[]): (fresh: string[]) => unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => fillable(item, ids));
    return (fresh) => items.map((fill) => fill(fresh));
  }
  const anyId = new RegExp(`(${ids.map((id) => id.replaceAll(/\W/g, '\\$&')).join('|')})`);
  if (typeof value !== 'string' || !anyId.test(value)) return () => value;
  // Literals at even places, ids at odd ones.
  const pieces = value.split(anyId).map((piece, i) => (i % 2 === 0 ? piece : ids.indexOf(piece)));
  return (fresh) => {
    let filled = '';
    for (const piece of pieces) filled += typeof piece === 'string' ? piece : fresh[piece];
    return filled;
  };
}
