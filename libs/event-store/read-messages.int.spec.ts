import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { reduceThread, toExtendedLogEntry, toMessageEntries, type Message, type StoredEvent } from '#domain';
import { anyChances, RandomLog } from '../domain/random-log.testing.ts';
import { newRun, openFixture, type Fixture } from './store.testing.ts';

// Real: PostgreSQL. The events of random logs are inserted as the domain decided them.

let on: Fixture;
beforeAll(async () => {
  on = await openFixture();
});
afterAll(() => on.close());

const MIB = 1024 * 1024;
let logs = 0;

/** Stores the log as that of the only Thread, because random logs share the ids of Runs. */
async function store(events: readonly StoredEvent[]): Promise<string> {
  const threadId = `T${++logs}`;
  await on.admin.query('truncate events, streams');
  const rows = events.map(({ schemaVersion, runId, occurredAt, ...event }) => {
    return { ...event, schema_version: schemaVersion, run_id: runId, occurred_at: occurredAt };
  });
  await on.admin.query(
    `insert into events (thread_id, version, id, type, schema_version, data, run_id, attempt, public, occurred_at)
     select $1, version, id, type, schema_version, data, run_id, attempt, public, occurred_at
     from json_to_recordset($2) as event (version integer, id text, type text, schema_version smallint, data jsonb,
                                          run_id text, attempt integer, public boolean, occurred_at timestamptz)`,
    [threadId, JSON.stringify(rows)],
  );
  const last = events.at(-1)!;
  await on.admin.query('insert into streams values ($1, $2, $3, $4, $5)', [
    ...[threadId, last.version, last.id, last.occurredAt, '{}'],
  ]);
  return threadId;
}

async function readPages(threadId: string, maxRuns: number, maxBytes = MIB) {
  const pages: { messages: readonly Message[]; truncated: boolean; types: string[] }[] = [];
  for (let before: string | null = null; ;) {
    const page = await on.store.readMessages(threadId, before, { maxRuns, maxBytes });
    const { messages } = reduceThread(page!.events.flatMap((event) => toMessageEntries(event)));
    pages.unshift({ messages, truncated: page!.truncated, types: page!.events.map(({ type }) => type) });
    before = page!.nextId;
    if (before === null) return pages;
  }
}

/** Returns the messages as the whole log gives them. */
function messagesOf(events: readonly StoredEvent[]): readonly Message[] {
  return reduceThread(events.flatMap((event) => toExtendedLogEntry(event) ?? [])).messages;
}

/** Leaves out the thinking of earlier releases, which stored it only as deltas. */
const comparable = (messages: readonly Message[]) =>
  messages.map((message) => {
    return { ...message, parts: message.parts.filter((part) => part.type !== 'thinking' || part.stepId !== undefined) };
  });

it('returns pages that together give the messages of the whole log', async () => {
  const holds = fc.asyncProperty(anyChances, async (chances) => {
    const { events } = new RandomLog(chances);
    const threadId = await store(events);
    const expected = comparable(messagesOf(events));
    for (const maxRuns of [1, 3, 100]) {
      const pages = await readPages(threadId, maxRuns);
      expect(comparable(pages.flatMap(({ messages }) => messages))).toEqual(expected);
      expect(Math.max(...pages.map(({ messages }) => messages.length))).toBeLessThanOrEqual(2 * maxRuns);
    }
    const { lastEventId } = (await on.store.readMessages(threadId, null, { maxRuns: 1, maxBytes: MIB }))!;
    expect(lastEventId).toBe(events.at(-1)!.id);
  });
  await fc.assert(holds, { numRuns: 60, endOnFailure: true });
});

/** Returns the events of a Thread in which each Run writes one message of this length in many deltas. */
function told(lengths: number[], after: StoredEvent['type'] = 'run.completed'): StoredEvent[] {
  const events: Pick<StoredEvent, 'type' | 'data' | 'runId'>[] = [];
  lengths.forEach((length, i) => {
    const runId = `R${i}`;
    const add = (type: string, data: object) => events.push({ type, data, runId } as StoredEvent);
    add('message.added', { text: `Question ${i}`, requestId: null, fileIds: [] });
    add('run.queued', { ...newRun(), trigger: 'user_prompt', delayMs: 0 });
    add('run.started', { first: true });
    for (let j = 0; j < length; j += 1_000) add('assistant.text_added', { text: 'x'.repeat(1_000), step: 1 });
    if (after === 'run.completed') add('assistant.message_added', { text: 'x'.repeat(length), toolCalls: [], step: 1 });
    add(after, { durationMs: 1 });
  });
  return events.map((event, i) => {
    const id = `01${String(i).padStart(24, '0')}`;
    const place = {
      version: i + 1,
      id,
      attempt: 1,
      schemaVersion: 1,
      public: true,
      occurredAt: new Date(i).toISOString(),
    };
    return { ...event, ...place } as StoredEvent;
  });
}

const sizesOf = (pages: { messages: readonly Message[] }[]) =>
  pages.map(({ messages }) =>
    messages.flatMap(({ parts }) => parts.map((part) => ('text' in part ? part.text.length : 0))),
  );

it('returns no delta of a stored message', async () => {
  const threadId = await store(told([5_000, 5_000]));
  const [page] = await readPages(threadId, 10);
  expect(page?.types.filter((type) => type === 'assistant.text_added')).toEqual([]);
  expect(page?.messages).toHaveLength(4);
});

interface Plan {
  'Relation Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: Plan[];
}

/** Returns how many rows of `events` a plan has read. */
function rowsRead({ Plans = [], ...node }: Plan): number {
  const own = (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
  return (node['Relation Name'] === 'events' ? own : 0) + Plans.reduce((sum, plan) => sum + rowsRead(plan), 0);
}

it('reads none of 20,000 deltas, also by a generic plan', async () => {
  const threadId = await store(told([10_000_000, 10_000_000]));
  await on.admin.query('analyze events');
  await on.admin.query('set plan_cache_mode = force_generic_plan');
  await on.admin.query(`prepare messages as ${readFileSync(join(import.meta.dirname, 'read-messages.sql'), 'utf8')}`);
  const { rows } = await on.admin.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
    `explain (analyze, format json) execute messages ('${threadId}', 'Z', 20, ${MIB})`,
  );
  expect(rowsRead(rows[0]!['QUERY PLAN'][0].Plan)).toBeLessThan(20);
});

it('returns one row for the deltas of a stopped step', async () => {
  const threadId = await store(told([5_000], 'run.cancelled'));
  const [page] = await readPages(threadId, 10);
  expect(page?.types.filter((type) => type === 'assistant.text_added')).toHaveLength(1);
  expect(sizesOf([page!])).toEqual([[10, 5_000]]);
});

it('ends a page with the Run that exceeds the bytes', async () => {
  const threadId = await store(told([3_000, 3_000, 3_000]));
  expect(sizesOf(await readPages(threadId, 10, 7_000))).toEqual([
    [10, 3_000],
    [10, 3_000, 10, 3_000],
  ]);
  expect((await readPages(threadId, 10, 7_000)).every(({ truncated }) => !truncated)).toBe(true);
});

it('leaves out the older steps of a Run that exceeds the bytes alone', async () => {
  const events = told([3_000, 3_000]);
  const one = events.map((event) => ({ ...event, runId: 'R' })).filter(({ type }, i) => i < 6 || type !== 'run.queued');
  const threadId = await store(one.filter(({ type }, i) => i > 5 || type !== 'run.completed'));
  const [page, ...more] = await readPages(threadId, 10, 2_000);
  expect(more).toEqual([]);
  expect(page).toMatchObject({ truncated: true });
  // Questions and the end are kept, and the newest text.
  expect(page?.types).toEqual(expect.arrayContaining(['message.added', 'run.started', 'run.completed']));
  expect(page?.types.filter((type) => type === 'assistant.message_added')).toHaveLength(1);
});

it('returns null for an unknown Thread, and no events for a Thread without Runs', async () => {
  const bounds = { maxRuns: 1, maxBytes: MIB };
  expect(await on.store.readMessages('none', null, bounds)).toBeNull();
  const threadId = await store(new RandomLog([]).events);
  const page = await on.store.readMessages(threadId, null, bounds);
  expect(page).toMatchObject({ events: [], nextId: null, truncated: false });
});
