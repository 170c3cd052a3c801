import { monotonicFactory, ulid } from 'ulid';
import type { Invariant } from './check-stream.ts';
import type { Fixture, Seeded } from './threads.testing.ts';

/** Returns ids that increase also within one millisecond. */
const nextId = monotonicFactory();

/** Every table with rows of a Thread. */
export const TABLES = ['streams', 'events', 'thread_summaries', 'run_summaries', 'run_work', 'files'];

const queuedData = {
  trigger: 'user_prompt',
  agentVersion: 1,
  limits: { queueMs: 1, workMs: 1, waitMs: 1, maxLosses: 3 },
  delayMs: 0,
};
export const completed = { finalOutput: null, durationMs: null };
const piece = { text: 'x' };
const claim = { dispatch: 1, holder: 'w' };

const created = {
  agentId: 'a',
  organizationId: 'o',
  kind: 'pet',
  userId: 'u',
  owner: { personId: null, serviceTokenId: null },
};

const OTHER_WORK: Record<string, string> = {
  state: `'ready'`,
  dispatch: 'dispatch + 1',
  attempt: 'attempt + 1',
  holder: `'another'`,
  organization_id: `'another'`,
  agent_id: `'another'`,
  queue_ms: 'queue_ms + 1',
};

/** One way to break a Thread, the state of the Thread, and the exact findings. */
export type Violation = [how: string, story: string, found: Invariant[], violate: (thread: Seeded) => Promise<void>];

/** Writes by SQL what no append can write. */
export interface Vandal {
  sql: (text: string, ...values: unknown[]) => Promise<void>;
  /** Adds an event to a stream and adapts the state row, so that only the event itself can be wrong. */
  append: (
    threadId: string,
    type: string,
    runId: string | null,
    attempt: number | null,
    data?: unknown,
  ) => Promise<void>;
}

export function vandalOf(on: () => Fixture): Vandal {
  const sql: Vandal['sql'] = async (text, ...values) => {
    const { rowCount } = await on().admin.query(text, values);
    if (rowCount === 0) throw new Error(`a violation that changes nothing is none: ${text}`);
  };
  const append: Vandal['append'] = async (threadId, type, runId, attempt, data = {}) => {
    await sql(
      `insert into events (thread_id, version, id, type, schema_version, data, run_id, attempt, public, occurred_at)
     select thread_id, version + 1, $2, $3, 1, $4, $5, $6, $7, last_occurred_at from streams where thread_id = $1`,
      threadId,
      nextId(Date.now() + 60_000),
      type,
      JSON.stringify(data),
      runId,
      attempt,
      /^(assistant\.text|run\.(started|completed|failed|cancelled|expired))/.test(type),
    );
    await sql(
      `update streams s set version = e.version, last_event_id = e.id
     from events e where s.thread_id = $1 and e.thread_id = $1 and e.version = s.version + 1`,
      threadId,
    );
  };
  return { sql, append };
}

export function violationsOn(on: () => Fixture): Violation[] {
  const { sql, append } = vandalOf(on);
  return [
    [
      'a version that is missing',
      'completed',
      ['I2'],
      ({ threadId }) => sql(`delete from events where thread_id = $1 and type = 'usage.recorded'`, threadId),
    ],
    [
      'versions that do not begin at 1',
      'empty',
      ['I2'],
      async ({ threadId }) => {
        await sql('update events set version = 2 where thread_id = $1', threadId);
        await sql('update streams set version = 2 where thread_id = $1', threadId);
      },
    ],
    [
      'an id that is not above the one before',
      'completed',
      ['I2'],
      ({ threadId }) =>
        sql(
          `update events set id = '0' || substr(id, 2, 24) || 'X' where thread_id = $1 and version = 3
         and id <> (select max(id) from events where thread_id = $1)`,
          threadId,
        ).then(() =>
          sql(
            `update events e set id = b.id from events b where e.thread_id = $1 and b.thread_id = $1 and e.version = 3 and b.version = 2`,
            threadId,
          ),
        ),
    ],
    [
      'a time before the one before',
      'completed',
      ['I2'],
      ({ threadId }) =>
        sql(
          `update events set occurred_at = occurred_at - interval '1 h' where thread_id = $1 and type = 'tool.started'`,
          threadId,
        ),
    ],
    [
      'a state row with another version',
      'running',
      ['I2'],
      ({ threadId }) => sql('update streams set version = version + 1 where thread_id = $1', threadId),
    ],
    [
      'a state row with another last id',
      'running',
      ['I2'],
      ({ threadId }) => sql(`update streams set last_event_id = 'X' where thread_id = $1`, threadId),
    ],
    [
      'a state row with another last time',
      'running',
      ['I2'],
      ({ threadId }) =>
        sql(`update streams set last_occurred_at = last_occurred_at + interval '1 s' where thread_id = $1`, threadId),
    ],
    [
      'a stream that does not begin by its creation',
      'empty',
      ['I7', 'begin'],
      ({ threadId }) => sql(`update events set type = 'thread.terminated', data = '{}' where thread_id = $1`, threadId),
    ],
    [
      'a second creation',
      'empty',
      ['begin'],
      ({ threadId }) => append(threadId, 'thread.created', null, null, created),
    ],
    [
      'a second terminal event',
      'completed',
      ['I3'],
      ({ threadId, runId }) =>
        append(threadId, 'run.failed', runId, 1, {
          error: { code: 'internal', message: 'm', retryable: false },
          durationMs: 1,
        }),
    ],
    [
      'a second terminal event of the same kind',
      'completed',
      ['I3'],
      ({ threadId, runId }) => append(threadId, 'run.completed', runId, 1, completed),
    ],
    [
      'an event of a Run that has ended',
      'failed',
      ['I3'],
      ({ threadId, runId }) => append(threadId, 'assistant.text_added', runId, 1, piece),
    ],
    [
      'a move that the table does not have',
      'booting',
      ['I3'],
      ({ threadId, runId }) => append(threadId, 'run.completed', runId, 1, completed),
    ],
    [
      'a resumption of a Run that waits for no decision',
      'queued',
      ['I3'],
      ({ threadId, runId }) => append(threadId, 'run.resumed', runId, null, { dispatch: 2 }),
    ],
    [
      'an event of a Run that was never queued',
      'running',
      ['I3'],
      ({ threadId }) => append(threadId, 'assistant.text_added', 'no-run', null, piece),
    ],
    [
      'a Run that is queued twice',
      'queued',
      ['I3'],
      ({ threadId, runId }) => append(threadId, 'run.queued', runId, null, queuedData),
    ],
    [
      'a move of no Run',
      'queued',
      ['I3'],
      ({ threadId }) => append(threadId, 'run.cancelled', null, null, { by: null }),
    ],
    [
      'two Runs that are claimed concurrently',
      'in line',
      ['I4', 'I7', 'work'],
      async ({ threadId }) => {
        const { rows } = await on().admin.query<{ id: string }>(
          `select state #>> '{runs,1,id}' as id from streams where thread_id = $1`,
          [threadId],
        );
        await append(threadId, 'run.claimed', rows[0]?.id ?? '', 1, claim);
      },
    ],
    [
      'a claim with the attempt of the one before',
      'resumed',
      ['I6', 'I7', 'work'],
      ({ threadId, runId }) => append(threadId, 'run.claimed', runId, 1, { ...claim, dispatch: 2 }),
    ],
    [
      'an event with an attempt older than the claim',
      'running again',
      ['I6'],
      ({ threadId, runId }) => append(threadId, 'assistant.text_added', runId, 1, piece),
    ],
    [
      'an event with an attempt that was never claimed',
      'running',
      ['I6'],
      ({ threadId, runId }) => append(threadId, 'assistant.text_added', runId, 2, piece),
    ],
    [
      'an event of a worker after its claim has ended',
      'to be retried',
      ['I6'],
      ({ threadId, runId }) => append(threadId, 'assistant.text_added', runId, 1, piece),
    ],
    [
      'a public event that shows nothing',
      'empty',
      ['public'],
      ({ threadId }) => sql('update events set public = true where thread_id = $1', threadId),
    ],
    [
      'a text that is not public',
      'completed',
      ['public'],
      ({ threadId }) =>
        sql(`update events set public = false where thread_id = $1 and type = 'assistant.text_added'`, threadId),
    ],
    [
      'a state that is not the fold',
      'running',
      ['I7'],
      ({ threadId }) =>
        sql(`update streams set state = jsonb_set(state, '{runs,0,attempt}', '7') where thread_id = $1`, threadId),
    ],
    [
      'a state that is none',
      'queued',
      ['I7', 'work'],
      ({ threadId }) => sql(`update streams set state = '"none"' where thread_id = $1`, threadId),
    ],
    [
      'a state row that is missing',
      'empty',
      ['I7'],
      ({ threadId }) => sql('delete from streams where thread_id = $1', threadId),
    ],
    [
      'a stream without events',
      'empty',
      ['I7'],
      ({ threadId }) => sql('delete from events where thread_id = $1', threadId),
    ],
    [
      'a summary that is not the fold',
      'queued',
      ['I7'],
      ({ threadId }) => sql(`update thread_summaries set title = null where thread_id = $1`, threadId),
    ],
    [
      'a summary that is missing',
      'queued',
      ['I7'],
      ({ threadId }) => sql('delete from thread_summaries where thread_id = $1', threadId),
    ],
    [
      'a summary of a Run that is not the fold',
      'completed',
      ['I7'],
      ({ runId }) => sql(`update run_summaries set final_output = null where run_id = $1`, runId),
    ],
    [
      'a time without end',
      'completed',
      ['I7'],
      ({ runId }) => sql(`update run_summaries set completed_at = 'infinity' where run_id = $1`, runId),
    ],
    [
      'a summary of a Run that is missing',
      'completed',
      ['I7'],
      ({ runId }) => sql('delete from run_summaries where run_id = $1', runId),
    ],
    [
      'a summary of a Run that never was',
      'empty',
      ['I7'],
      ({ threadId }) =>
        sql(
          `insert into run_summaries (run_id, thread_id, status, trigger, created_at, updated_at)
         values ($2, $1, 'queued', 'retry', now(), now())`,
          threadId,
          ulid(),
        ),
    ],
    [
      'a log that ends with RUNNING without a live Run',
      'completed',
      ['I7', 'I9'],
      async ({ threadId }) => {
        await sql(
          `update events set data = '{"status": "RUNNING"}' where thread_id = $1 and type = 'thread.status_entered'`,
          threadId,
        );
        await sql(`update thread_summaries set status = 'RUNNING' where thread_id = $1`, threadId);
        await sql(
          `update streams set state = jsonb_set(state, '{status}', '"RUNNING"') where thread_id = $1`,
          threadId,
        );
      },
    ],
    [
      'an event that cannot be folded',
      'queued',
      ['fold'],
      ({ threadId }) => append(threadId, 'run.queued', 'x', null, null),
    ],
    [
      'a live Run without a work item',
      'waiting',
      ['work'],
      ({ runId }) => sql('delete from run_work where run_id = $1', runId),
    ],
    [
      'a work item of a Run that has ended',
      'completed',
      ['work'],
      ({ threadId, runId }) =>
        sql(
          `insert into run_work values ($2, $1, 'o', 'a', 'ready', 1, 0, null, now(), now(), 1, '1 s', null)`,
          threadId,
          runId,
        ),
    ],
    ...[
      'state',
      'dispatch',
      'attempt',
      'holder',
      'organization_id',
      'agent_id',
      'queue_ms',
      'due_at',
      'work_until',
    ].map((column): Violation => [
      `another ${column} in the work item`,
      'running',
      ['work'],
      ({ runId }) => sql(`update run_work set ${column} = ${OTHER_WORK[column] ?? 'null'} where run_id = $1`, runId),
    ]),
  ];
}
