import { monotonicFactory } from 'ulid';
import { toLogEntry, type Command, type LogEntry } from '#domain';
import { CommandHandler, ThreadStore, type Commit } from '#event-store';
import { createLogger, loadConfig, openDatabase, type Database } from '#platform';
import { createTestDatabase, eventually, type TestDatabase } from '#testing';
import type { LiveBus } from './bus.ts';
import { LiveHub } from './live-hub.ts';
import { newsOf } from './news.ts';
import type { ReaderEnd } from './open-thread.ts';
import { openLiveBus } from './open-live-bus.ts';

// Real: PostgreSQL, appends by CommandHandler, the bus of one process. The hub finds a deleted Thread by its poll, after 2 s.

const newId = monotonicFactory();
const logger = createLogger('silent', 'test');
const render = (entry: LogEntry): string => `${JSON.stringify(entry)}\n`;

let testDatabase: TestDatabase;
let database: Database;
let store: ThreadStore;
let bus: LiveBus;
let hub: LiveHub;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = await openDatabase({ url: testDatabase.url, applicationName: 'test', maxConnections: 10 });
  store = new ThreadStore(database.pool);
  bus = openLiveBus(loadConfig({ DATABASE_URL: testDatabase.url }), logger);
  hub = new LiveHub({ store, bus, render, logger });
});
afterAll(async () => {
  hub.close();
  await bus.close();
  await database.close();
  await testDatabase.drop();
});

const publish = (commit: Commit): void => bus.publish(commit.after.threadId, commit.after.version, newsOf(commit));

async function happen(threadId: string, commands: Command[], onCommit: (commit: Commit) => void): Promise<void> {
  const outcome = await new CommandHandler({ store, leaseMs: 10_000, onCommit }).handle({ threadId, commands });
  if (outcome.outcome !== 'appended') throw new Error(JSON.stringify(outcome));
}

function follow(threadId: string) {
  const reader = { entries: [] as LogEntry[], ended: null as ReaderEnd | null };
  hub.open({
    ...{ threadId, afterEventId: '', untilIdle: false },
    deliver: (frames) => {
      const lines = frames.toString().split('\n').slice(0, -1);
      reader.entries.push(...lines.map((line) => JSON.parse(line) as LogEntry));
      return true;
    },
    end: (reason) => (reader.ended = reason),
  });
  return reader;
}

/** Returns a running Thread, a function that records texts, and a reader that has all of its log. */
async function followed() {
  const [threadId, runId] = [newId(), newId()];
  const run = {
    runId,
    agentVersion: 1,
    limits: { queueMs: 600_000, workMs: 3_600_000, waitMs: 600_000, maxLosses: 3 },
  };
  const owner = { personId: newId(), serviceTokenId: null };
  const agent = { agentId: newId(), organizationId: newId(), kind: 'cattle' } as const;
  const commands: Command[] = [
    { type: 'create_thread', ...agent, userId: 'u', owner },
    { type: 'add_message', text: 'hi', requestId: null, fileIds: [], run, whenBusy: 'reject', by: null },
    { type: 'claim_run', runId, dispatch: 1, holder: 'w' },
    { type: 'start_run', runId, attempt: 1 },
  ];
  await happen(threadId, commands, publish);
  const record = (texts: string[], onCommit = publish): Promise<void> => {
    const facts = texts.map((text) => ({ type: 'assistant.text_added', data: { text } }) as const);
    return happen(threadId, [{ type: 'record', runId, attempt: 1, facts }], onCommit);
  };
  const reader = follow(threadId);
  await eventually(() => reader.entries.length > 0, { what: 'it has read its first page' });
  // The hub knows which version its reader has once a wake-up has followed the page.
  await record(['known']);
  await untilCaughtUp();
  return { threadId, runId, record, reader, untilCaughtUp };

  async function untilCaughtUp(): Promise<void> {
    const { events } = await store.readLogAfter(threadId, '', { maxEvents: 1_000 });
    await eventually(() => reader.entries.length >= events.length, { what: 'it has all of the log' });
    expect(reader.entries).toEqual(events.map(toLogEntry));
  }
}

test('entries that travel with the wake-up are delivered without a read', async () => {
  const { threadId, runId, record, untilCaughtUp } = await followed();
  const pages = jest.spyOn(store, 'readLogPage');
  for (let i = 0; i < 10; i++) await record([`delta ${i}`, 'and another']);
  await happen(threadId, [{ type: 'complete_run', runId, attempt: 1, finalOutput: null }], publish);
  await untilCaughtUp();
  expect(pages).not.toHaveBeenCalled();
  pages.mockRestore();
});

test.each([
  ['entries before them were lost', 'short', () => undefined],
  ['they are too large', 'x'.repeat(9_000), publish],
])('entries are read if %s', async (_, text, onCommit) => {
  const { record, reader, untilCaughtUp } = await followed();
  await record([text], onCommit);
  await record(['after']);
  await untilCaughtUp();
  expect(reader.entries.at(-1)?.content).toContain('after');
});

test('late entries of a deleted Thread are not shown', async () => {
  const { threadId, record, reader } = await followed();
  const before = [...reader.entries];
  const late: Commit[] = [];
  await record(['late'], (commit) => late.push(commit));
  await new CommandHandler({ store, leaseMs: 10_000 }).deleteThread(threadId);
  await eventually(() => reader.ended === 'thread_gone', { what: 'the reader is ended' });
  const next = follow(threadId);
  expect(late.map((commit) => newsOf(commit)?.events.includes('late'))).toEqual([true]);
  late.forEach(publish);
  await eventually(() => next.ended === 'thread_gone', { what: 'the next reader is ended' });
  expect([reader.entries, next.entries]).toEqual([before, []]);
});
