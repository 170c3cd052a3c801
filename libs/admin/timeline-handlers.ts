import type { Pool } from 'pg';
import { encodeTime } from 'ulid';
import { pricesOfModel } from '#agents';
import { ADMIN_LIMITS, type AdminAnswer, type AdminOperations, type ManagedRun, type RunTimeline } from '#contract';
import { eventTypesWith, isKnownEvent } from '#domain';
import { namedStatement, ownTurn, rethrowUnavailable } from '#platform';
import type { SomeHandlers } from './handlers.ts';
import { AdminReader, PAGE_BYTES } from './reader.ts';
import { runTimeline, type TimelineEvent } from './run-timeline.ts';
import { findRun, type ThreadHandlerParts } from './thread-handlers.ts';

const RUN_RANGE = namedStatement(`${import.meta.dirname}/queries`, 'run-range.sql').text;
const FIND_ACTOR = namedStatement(`${import.meta.dirname}/queries`, 'find-actor.sql').text;
const RUN_EVENTS = namedStatement(`${import.meta.dirname}/queries`, 'run-events.sql').text;
const RUN_TEXTS = namedStatement(`${import.meta.dirname}/queries`, 'run-texts.sql').text;
const RUN_CONTENT = namedStatement(`${import.meta.dirname}/queries`, 'run-content.sql').text;

/** Fails to compile if TimelineEvent lacks one of the types. */
const TIMELINE_TYPES: readonly TimelineEvent['type'][] = eventTypesWith('inTimeline');

/** The maximum of events shown, and of versions scanned, for one Run. Text deltas after the first are not shown. */
const MAX_EVENTS = 10_000;
const MAX_VERSIONS = 100_000;

/** The largest clock difference at which the ids of a Run's events are still found by its times, milliseconds. */
const CLOCK_SLACK_MS = 60_000;

export function timelineHandlers({
  pool,
  agents,
}: ThreadHandlerParts): SomeHandlers<'getRunTimeline' | 'listRunEvents'> {
  const reader = new AdminReader(pool);
  return {
    getRunTimeline: async ({ params: { runId } }) => {
      const run = await findRun(reader, runId);
      const { events, isComplete } = await readEvents(pool, run);
      const queued = events.find((event) => event.type === 'run.queued');
      const [manifest, texts] = queued
        ? await Promise.all([
            agents.version(run.agentId, queued.data.agentVersion),
            readTexts(pool, run, queued.version),
          ])
        : [null, null];
      // 10,000 events take long to read, and as long to fold.
      await ownTurn();
      const timeline = runTimeline(events, {
        modelName: manifest?.model?.name ?? manifest?.harness.name ?? 'model',
        pricesOf: (fallback) => (manifest === null ? null : pricesOfModel(manifest, fallback)),
        now: new Date().toISOString(),
        endedAt: run.completedAt,
      });
      const cancelledBy = timeline.cancelledBy === null ? null : await findActor(pool, timeline.cancelledBy);
      return { run, timeline: { ...timeline, ...texts, cancelledBy, isComplete } };
    },

    listRunEvents: async ({ params: { runId }, query: { limit, afterVersion } }) => {
      await findRun(reader, runId);
      type Row = AdminAnswer<AdminOperations['listRunEvents']>['events'][number] & { isFull: boolean };
      const values = [runId, afterVersion, limit + 1, PAGE_BYTES];
      const { rows } = await pool.query<Row>({ text: RUN_CONTENT, values }).catch(rethrowUnavailable);
      const events = rows.slice(0, limit).map(({ isFull: _, ...event }) => event);
      const hasMore = rows.length > limit || rows.at(-1)?.isFull === true;
      return { events, nextAfterVersion: hasMore ? (events.at(-1)?.version ?? null) : null };
    },
  };
}

/** Returns the input and output of a Run. `queued` is the version of its `run.queued`. */
async function readTexts(
  pool: Pool,
  { id, threadId }: ManagedRun,
  queued: number,
): Promise<Pick<RunTimeline, 'input' | 'output'> | undefined> {
  const values = [id, threadId, queued, ADMIN_LIMITS.runText];
  const { rows } = await pool
    .query<Pick<RunTimeline, 'input' | 'output'>>({ text: RUN_TEXTS, values })
    .catch(rethrowUnavailable);
  return rows[0];
}

type Actor = NonNullable<RunTimeline['cancelledBy']>;

/** Returns the person or token with this id. Another id is that of a local operator, and is readable. */
async function findActor(pool: Pool, id: string): Promise<Actor> {
  const { rows } = await pool.query<Omit<Actor, 'id'>>({ text: FIND_ACTOR, values: [id] }).catch(rethrowUnavailable);
  return { id, ...(rows[0] ?? { kind: 'local', name: id }) };
}

async function readEvents(
  pool: Pool,
  { id, threadId, createdAt, completedAt }: ManagedRun,
): Promise<{ events: TimelineEvent[] } & Pick<RunTimeline, 'isComplete'>> {
  const before = idAt(Date.parse(createdAt) - CLOCK_SLACK_MS);
  const after = completedAt === null ? null : idAt(Date.parse(completedAt) + CLOCK_SLACK_MS);
  type Range = { from: number; to: number };
  const ranges = await pool
    .query<Range>({ text: RUN_RANGE, values: [threadId, before, after] })
    .catch(rethrowUnavailable);
  const { from, to } = ranges.rows[0]!;
  const values = [threadId, id, from, Math.min(to, from + MAX_VERSIONS), MAX_EVENTS, TIMELINE_TYPES];
  type Row = TimelineEvent & { schemaVersion: number };
  const { rows } = await pool.query<Row>({ text: RUN_EVENTS, values }).catch(rethrowUnavailable);
  const isComplete = rows.length < MAX_EVENTS && to - from <= MAX_VERSIONS;
  return { events: rows.filter(isKnownEvent), isComplete };
}

/** Returns the lowest event id of that time in milliseconds. */
const idAt = (ms: number): string => `${encodeTime(Math.max(0, ms))}${'0'.repeat(16)}`;
