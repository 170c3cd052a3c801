import type { Tables } from './tables.ts';

const ms = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`;

/** Selects all rows of `run_work`. Milliseconds are exact, because a simulation's clock moves in steps of 125 µs. */
export const WORK_ROWS = `
  select run_id, thread_id, organization_id, agent_id, state, dispatch, attempt, holder,
         ${ms('due_at')}, ${ms('since')}, queue_ms, ${ms('work_left')}, ${ms('work_until')}, limited_by, ${ms('queue_left')}
  from run_work
  order by run_id`;

interface Contents {
  table: string;
  /** Returns each row as one JSON value. */
  query: string;
  /** Returns the same rows of the model. */
  rowsOf: (tables: Tables) => unknown[];
}

const row = (columns: string): string => `jsonb_build_array(${columns}) as row`;

/** All other tables that the simulation writes. Omits `created_at` of keys, which comes from PostgreSQL's own clock. */
export const CONTENTS: Contents[] = [
  {
    table: 'streams',
    query: `select ${row('thread_id, version, last_event_id, last_occurred_at, state')} from streams`,
    rowsOf: ({ streams }) =>
      [...streams].map(([threadId, { version, lastEventId, lastOccurredAt, state }]) => {
        return [threadId, version, lastEventId, lastOccurredAt, JSON.parse(state) as unknown];
      }),
  },
  {
    table: 'events',
    query: `select ${row('thread_id, version, id, type, schema_version, data, run_id, attempt, public, occurred_at')} from events`,
    rowsOf: ({ streams }) =>
      [...streams.values()].flatMap(({ events }) =>
        events.map(
          ({ threadId, version, id, type, schemaVersion, data, runId, attempt, public: isPublic, occurredAt }) => {
            return [threadId, version, id, type, schemaVersion, data, runId, attempt, isPublic, occurredAt];
          },
        ),
      ),
  },
  {
    table: 'thread_summaries',
    query: 'select to_jsonb(thread_summaries) as row from thread_summaries',
    rowsOf: ({ streams }) =>
      [...streams.values()].flatMap(({ thread }) => (thread === null ? [] : [JSON.parse(thread) as unknown])),
  },
  {
    table: 'run_summaries',
    query: 'select to_jsonb(run_summaries) as row from run_summaries',
    rowsOf: ({ streams }) =>
      [...streams.values()].flatMap(({ runs }) => [...runs.values()].map((run) => JSON.parse(run) as unknown)),
  },
  {
    table: 'idempotency_keys',
    query: `select ${row(`token_id || ' ' || key, fingerprint, thread_id, status, body, file_id`)} from idempotency_keys`,
    rowsOf: ({ keys }) =>
      [...keys].map(([key, { fingerprint, threadId, status, body }]) => [
        key,
        fingerprint,
        threadId,
        status,
        body,
        null,
      ]),
  },
  {
    table: 'workers',
    query: `select ${row(`holder, slots, ${ms('seen_at')}`)} from workers`,
    rowsOf: ({ workers }) => [...workers].map(([holder, { slots, seenAt }]) => [holder, slots, seenAt]),
  },
  {
    table: 'queue_controls',
    query: `select ${row(`queue, ${ms('paused_at')}`)} from queue_controls`,
    rowsOf: ({ pauses }) => [...pauses],
  },
];

/** Returns rows as sorted lines. */
export const contentsOf = (rows: readonly unknown[]): string => rows.map(textOf).toSorted().join('\n');

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/;

/** Returns JSON with sorted keys. Normalizes the offset and trailing zeros of times. */
export function textOf(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part === 'string' && TIMESTAMP.test(part)) return new Date(part).toISOString();
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });
}
