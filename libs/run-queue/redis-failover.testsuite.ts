import { setTimeout as sleep } from 'node:timers/promises';
import { createTestDatabase, eventually, type RedisServer, type TestDatabase } from '#testing';
import { Installation } from './run-queue.testing.ts';

// Real: PostgreSQL, BullMQ, redis-servers, Sentinels. A replica replaces the master that has the queue.

export interface Servers {
  url: string;
  masterOf(key: string): Promise<RedisServer>;
  cutReplication(master: RedisServer): Promise<void>;
  stop(): Promise<void>;
}

/** The most waiting Runs: few enough to finish in time, so that a timeout at the end means a stuck Run. */
const MAX_AHEAD = 500;
const PAUSE_MS = 5;

/** Adds Runs until stopped, and enqueues each immediately, as the API does. */
function commitRuns(on: Installation, consumed: readonly string[]): { stop(): Promise<number> } {
  let stopped = false;
  const running = (async () => {
    let count = 0;
    for (; !stopped; count++) {
      while (!stopped && count - consumed.length >= MAX_AHEAD) await sleep(PAUSE_MS);
      if (stopped) break;
      const [run] = await on.addReadyRuns('org', 1);
      on.enqueuer.enqueueSoon(run!);
    }
    return count;
  })();
  return {
    stop: () => {
      stopped = true;
      return running;
    },
  };
}

/** Runs the body under load. Checks afterwards that no Run was lost. */
export async function underLoad(on: Installation, body: (consumed: string[]) => Promise<void>): Promise<void> {
  const consumed = on.consumeRuns(8);
  on.startDispatcher();
  const commits = commitRuns(on, consumed);
  try {
    await on.waitFor(consumed, 50);
    await body(consumed);
  } catch (error) {
    await commits.stop();
    throw error;
  }
  const count = await commits.stop();
  await on.waitFor(consumed, count, 30_000);
  expect(new Set(consumed).size).toBe(count);
}

export function describeFailOver(start: () => Promise<Servers>): void {
  let database: TestDatabase;
  let servers: Servers;
  let on: Installation;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  const begin = async (): Promise<void> => {
    servers = await start();
    on = await Installation.open(database.url, servers.url);
    await on.registerWorker('worker', 8);
  };
  beforeEach(begin, 60_000);
  afterEach(async () => {
    try {
      await on.close();
    } finally {
      await servers.stop();
    }
  });

  const fails = {
    killed: (master: RedisServer) => master.kill(),
    silent: async (master: RedisServer) => master.pause(),
  };
  for (const [how, fail] of Object.entries(fails))
    test(
      `loses no Run, and continues, when the master is ${how} under load`,
      () =>
        underLoad(on, async (consumed) => {
          const master = await servers.masterOf(`{${on.name}}`);
          await fail(master);
          const isOther = async (): Promise<boolean> => (await servers.masterOf(`{${on.name}}`)) !== master;
          const before = consumed.length;
          await eventually(async () => consumed.length >= before + 50 && (await isOther()), {
            what: `master ${how}: Runs continued`,
            timeoutMs: 20_000,
          });
        }),
      60_000,
    );

  test('enqueues again the jobs that the new master lacks, although it has the epoch marker', async () => {
    on.startDispatcher();
    const earlier = await on.addReadyRuns('org', 2);
    const areEnqueued = (count: number) => async (): Promise<boolean> => (await on.queue.waitingCount()) === count;
    await eventually(areEnqueued(2), { what: 'the first Runs are enqueued' });
    await on.checkedOnceMore();
    const master = await servers.masterOf(`{${on.name}}`);
    await servers.cutReplication(master);
    const lost = await on.addReadyRuns('org', 3);
    await eventually(areEnqueued(5), { what: 'the other Runs are enqueued' });
    await master.kill();
    const isOther = async (): Promise<boolean> => (await servers.masterOf(`{${on.name}}`)) !== master;
    await eventually(isOther, { what: 'a replica has taken over', timeoutMs: 30_000 });

    await eventually(areEnqueued(5), { what: 'all Runs are enqueued again', timeoutMs: 30_000 });
    expect(on.log).not.toContain('lost its data');
    const consumed = on.consumeRuns(4);
    await on.waitFor(consumed, 5);
    expect(consumed.sort()).toEqual([...earlier, ...lost].map(({ runId }) => runId).sort());
  }, 90_000);
}
