import { openDatabase } from '#platform';
import { rebuild, verify } from '#projections';
import { describeWithRedis, redisUrl } from '#testing';
import { allRunsCompleted, expectHealthy, expectWholeLog } from './support/checks.ts';
import { createThread, inParallel, readLog, readStream, type Caller, type LogEntry } from './support/client.ts';
import { startSystem, type System } from './support/system.ts';

const THREADS = 2_000;
const CONNECTIONS = 32;

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

  test(`${THREADS} Threads from ${CONNECTIONS} connections all complete, while summaries are rebuilt (F18)`, async () => {
    const rebuilding = new AbortController();
    const rebuilds = rebuildUntil(rebuilding.signal);
    const created = await inParallel(THREADS, CONNECTIONS, (i) => createThread(callerOf(i), `message ${i}`));
    expect(created.filter(({ status }) => status !== 201)).toEqual([]);
    await allRunsCompleted(system.database, THREADS, 120_000);
    rebuilding.abort();
    const { runs, differences } = await rebuilds;
    expect(runs).toBeGreaterThan(0);
    expect(differences).toBe(0);
    await expectHealthy(system.database);
    // Every twentieth, as a caller sees it: the whole suite has ten minutes.
    await inParallel(THREADS / 20, 8, async (n) => {
      const { thread, run } = created[n * 20]!.body;
      expectWholeLog(await readLog(callerOf(n), thread.id), run!.id, `You said: message ${n * 20}`);
    });
    expect((await rebuild(system.database.pool)).differences).toBe(0);
  }, 240_000);

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

  test('a transaction left open does not hold up Runs, streams or verify (F19)', async () => {
    const holder = await system.database.pool.connect();
    await holder.query('begin');
    await holder.query('select pg_current_xact_id()');
    try {
      const streamed = await inParallel(100, 16, async (i) => {
        const { body } = await createThread(callerOf(i), `beside ${i}`);
        const frames = await readStream(callerOf(i + 1), `/threads/${body.thread.id}/events/stream?until=idle`);
        const events = frames.filter(({ event }) => event === 'thread.event');
        return { body, entries: events.map(({ data }) => JSON.parse(data) as LogEntry) };
      });
      for (const [i, { body, entries }] of streamed.entries())
        expectWholeLog(entries, body.run!.id, `You said: beside ${i}`);
      expect((await verify(system.database.pool)).findings).toEqual([]);
    } finally {
      await holder.query('rollback');
      holder.release();
    }
  }, 120_000);
});
