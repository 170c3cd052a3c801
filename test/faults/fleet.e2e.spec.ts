import { CommandHandler, ThreadStore } from '#event-store';
import { newId, openDatabase } from '#platform';
import { rebuild, verify } from '#projections';
import { describeWithRedis, redisUrl } from '#testing';
import { allRunsCompleted, expectHealthy, expectStored, expectWholeLog } from '../support/checks.ts';
import {
  createAcknowledged,
  entriesOf,
  follow,
  inParallel,
  readLog,
  readStream,
  type Caller,
  type LogEntry,
} from '../support/client.ts';
import { isLong, startSystem, upTo, type System } from '../support/system.ts';

const THREADS = isLong ? 10_000 : 2_000;
const CONNECTIONS = 32;
const READERS = 16;
/** Enough for 30 entries on a slow machine: the slower an append, the more deltas share an entry. */
const READ = '/pieces 100 /pause 40 ';
/** Returns the text without its commands, and the deltas that the commands request. */
const answerTo = (text: string): string =>
  text.startsWith(READ) ? text.slice(READ.length) + Array.from({ length: 100 }, (_, i) => ` ${i + 1}`).join('') : text;
/** How long a transaction is left open; at least for a round of Runs. */
const OPEN_MS = isLong ? 60_000 : 0;

describeWithRedis('two api and two worker processes on PostgreSQL and Redis', () => {
  let system: System;
  let callers: Caller[];

  beforeAll(async () => {
    system = await startSystem({ queueUrl: redisUrl().url });
    const [one, two] = await Promise.all([
      system.startApi(),
      system.startApi(),
      system.startWorker(),
      system.startWorker(),
    ]);
    callers = [one.caller, two.caller];
  }, 120_000);

  afterAll(() => system.stop());

  const callerOf = (i: number): Caller => callers[i % callers.length]!;

  test(
    `${THREADS} Threads from ${CONNECTIONS} connections all complete, read live, while summaries are rebuilt (F18)`,
    async () => {
      const rebuilding = new AbortController();
      const rebuilds = rebuildUntil(rebuilding.signal);
      const readers: { threadId: string; seen: Promise<LogEntry[]> }[] = [];
      const created = await inParallel(THREADS, CONNECTIONS, async (i) => {
        const isRead = i % (THREADS / READERS) === 1;
        const thread = await createAcknowledged(callerOf(i), `${isRead ? READ : ''}message ${i}`);
        if (isRead) readers.push({ ...thread, seen: follow(callers, thread.threadId) });
        return thread;
      });
      await allRunsCompleted(system.database, THREADS, upTo(120_000));
      rebuilding.abort();
      const { runs, differences } = await rebuilds;
      expect(runs).toBeGreaterThan(0);
      expect(differences).toBe(0);
      await expectHealthy(system.database);
      await expectStored(system.database, created);
      expect(readers).toHaveLength(READERS);
      for (const { threadId, seen } of readers) {
        const log = await readLog(callerOf(0), threadId);
        expect(await seen).toEqual(log);
        expect(log.length).toBeGreaterThan(30);
      }
      await inParallel(THREADS, 8, async (n) => {
        const { threadId, runId, text } = created[n]!;
        expectWholeLog(await readLog(callerOf(n), threadId), runId, `You said: ${answerTo(text)}`);
      });
      expect((await rebuild(system.database.pool)).differences).toBe(0);
    },
    upTo(240_000),
  );

  /** Rebuilds over and over, on a connection of its own, and counts what it found to differ. */
  async function rebuildUntil(signal: AbortSignal): Promise<{ runs: number; differences: number }> {
    const database = await openDatabase({ url: system.databaseUrl, applicationName: 'rebuild', maxConnections: 1 });
    const total = { runs: 0, differences: 0 };
    while (!signal.aborted) {
      total.differences += (await rebuild(database.pool)).differences;
      total.runs++;
    }
    await database.close();
    return total;
  }

  test(
    'a transaction left open after an append holds up no other Thread and not verify, and its event is not skipped (F19)',
    async () => {
      const { threadId } = await createAcknowledged(callerOf(0), 'attach something');
      const before = await follow(callers, threadId);
      const lastEventId = before.at(-1)?.id;
      const path = `/threads/${threadId}/events/stream`;
      const next = readStream(callerOf(1), path, { lastEventId, stop: () => true });
      next.catch(() => undefined); // awaited below, unless something else fails first
      const fileId = newId();
      const open = await attachFileAndLeaveOpen(threadId, fileId);
      try {
        const until = performance.now() + OPEN_MS;
        do {
          await inParallel(100, 16, async (i) => {
            const { threadId: beside, runId, text } = await createAcknowledged(callerOf(i), `beside ${i}`);
            const seen = await follow([callerOf(i + 1), callerOf(i)], beside);
            expectWholeLog(seen, runId, `You said: ${text}`);
            expect(seen).toEqual(await readLog(callerOf(i), beside));
          });
        } while (performance.now() < until);
        expect((await verify(system.database.pool)).findings).toEqual([]);
        expect(await readLog(callerOf(0), threadId)).toEqual(before);
        await open.commit();
        expect(entriesOf(await next)).toMatchObject([{ type: 'session_files.updated', content: fileId }]);
      } finally {
        await open.close();
      }
      await expectHealthy(system.database);
    },
    upTo(120_000),
  );

  /** The pool's one connection is in a transaction for as long as it is not told otherwise. */
  async function attachFileAndLeaveOpen(threadId: string, fileId: string) {
    const database = await openDatabase({ url: system.databaseUrl, applicationName: 'open', maxConnections: 1 });
    const { pool } = database;
    pool.options.idleTimeoutMillis = 0;
    const transactionId = async (): Promise<unknown> => (await pool.query('select pg_current_xact_id()')).rows;
    await pool.query('begin');
    await pool.query('set local idle_in_transaction_session_timeout = 0');
    const handler = new CommandHandler({ store: new ThreadStore(pool), leaseMs: 1_000 });
    const outcome = await handler.handle({ threadId, commands: [{ type: 'attach_file', fileId }] });
    expect(outcome).toMatchObject({ outcome: 'appended' });
    const begun = await transactionId();
    return {
      commit: async () => {
        expect(await transactionId()).toEqual(begun);
        await pool.query('commit');
      },
      close: () => database.close(),
    };
  }
});
