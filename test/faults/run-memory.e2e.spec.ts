import { setTimeout as sleep } from 'node:timers/promises';
import type { RequeueReason } from '#domain';
import { eventually, memoryOf, peakMemory, reportLatency, type SpawnedNode } from '#testing';
import { createAcknowledged, getThread, inParallel, postEvents } from '../support/client.ts';
import { MetricsReader } from '../support/metrics-reader.ts';
import { POOL_MEMORY, startSystem, type System } from '../support/system.ts';
import { addTenant, type Tenant } from '../support/tenants.ts';
import { toldTimes } from '../support/times.ts';

/**
 * One tenant asks for more Runs with transcripts of 8 MiB than a worker has slots. Before Runs waited for memory, 16 of them
 * ended a worker with 512 MiB, half of it for V8's heap.
 */

const MIB = 1024 * 1024;
const MEMORY = {
  api: { bytes: 1024 * MIB, children: POOL_MEMORY },
  worker: { bytes: 512 * MIB, children: POOL_MEMORY },
};
const SLOTS = 16;
const RUNS = 16;
/** What fits into a body of 8 MiB. */
const CHARACTERS = 8 * MIB - 32 * 1024;
/** A Run with little to read waits at most for a slot that Runs waiting for memory give back. Milliseconds. */
const MORE_DELAY_MS = 2_500;

let system: System;
let worker: SpawnedNode;
let greedy: Tenant;
let neighbour: Tenant;

beforeAll(async () => {
  system = await startSystem({
    env: { WORKER_SLOTS: String(SLOTS), METRICS_PORT: '0' },
    memoryLimits: MEMORY,
  });
  const { caller } = await system.startApi();
  worker = await system.startWorker();
  greedy = await addTenant(system.database.pool, caller.baseUrl, 'Greedy');
  neighbour = await addTenant(system.database.pool, caller.baseUrl, 'Neighbour');
}, 120_000);
afterAll(() => system.stop());

test(`${RUNS} Runs with transcripts of 8 MiB leave a worker with 512 MiB alive, and another tenant’s Runs complete`, async () => {
  const alone = await neighboursRuns((count) => eventually(() => count() >= RUNS, { what: 'it has some Runs' }));
  const threads: string[] = [];
  for (let i = 0; i < RUNS; i++) threads.push(await largeThread());
  const peak = watchMemory(worker);
  const reader = new MetricsReader();
  let mostWaiting = 0;
  const beside = await neighboursRuns(async () => {
    const posted = await inParallel(RUNS, 4, (i) =>
      postEvents(greedy, threads[i]!, { type: 'user_message', text: 'hi /pieces 15 /pause 100' }),
    );
    expect(posted.map(({ status }) => status)).toEqual(Array(RUNS).fill(200));
    await eventually(
      async () => {
        if (!(await isAlive())) return true;
        const scraped = await reader.read(worker);
        mostWaiting = Math.max(mostWaiting, scraped.get('spool_runs_waiting_for_memory') ?? 0);
        return (await liveRuns()) === 0;
      },
      { what: 'all Runs have ended', timeoutMs: 150_000 },
    );
  });
  expect({ isAlive: await isAlive() }).toEqual({ isAlive: true });
  const mostBytes = peak.stop();
  expect(peakMemory(worker)).toBeLessThan(MEMORY.worker.bytes);
  expect(mostBytes).toBeLessThan(MEMORY.worker.bytes);
  process.stderr.write(
    `run memory: at most ${Math.round(mostBytes / MIB)} MiB of private memory; ${mostWaiting} Runs waited at once, ${(await requeued('handed_over')).length} hand-overs\n` +
      `run memory: the neighbour’s Runs: alone ${toldTimes(alone)}; beside ${toldTimes(beside)}\n`,
  );
  expect(await statuses(threads)).toEqual(Array(RUNS).fill('completed'));
  expect(mostWaiting).toBeGreaterThan(0);
  expect([...(await requeued('lease_expired')), ...(await requeued('retryable_failure'))]).toEqual([]);
  reportLatency(Math.max(...alone) + MORE_DELAY_MS, beside, 'a Run of the neighbour took');
  await eventually(async () => (await reader.read(worker)).get('spool_run_memory_bytes') === 0, {
    what: 'all memory is given back',
  });
}, 300_000);

/** A Thread whose first Run has failed, and left 8 MiB of a message. One character makes V8 keep two bytes for each. */
async function largeThread(): Promise<string> {
  const { threadId } = await createAcknowledged(greedy, '/fail ☃'.padEnd(CHARACTERS, 'x'));
  await eventually(async () => (await liveRuns()) === 0, { what: 'its Run has failed', timeoutMs: 60_000 });
  return threadId;
}

/** The neighbour starts one small Run after the other. Returns how long each took, from its creation to its end. */
async function neighboursRuns(during: (count: () => number) => Promise<unknown>): Promise<number[]> {
  let isOver = false;
  const runIds: string[] = [];
  const starting = (async () => {
    while (!isOver && (await isAlive())) {
      const { threadId, runId } = await createAcknowledged(neighbour, 'hi');
      runIds.push(runId);
      const isOverNow = async (): Promise<boolean> =>
        (await getThread(neighbour, threadId)).body.run?.status === 'completed' || !(await isAlive());
      await eventually(isOverNow, { what: 'the neighbour’s Run has completed', timeoutMs: 60_000 });
    }
  })();
  await Promise.race([during(() => runIds.length), starting]).finally(() => (isOver = true));
  await starting;
  const { rows } = await system.database.pool.query<{ ms: number }>(
    `select extract(epoch from completed_at - created_at)::float8 * 1000 as ms from run_summaries where run_id = any ($1)`,
    [runIds],
  );
  return rows.map(({ ms }) => ms);
}

const isAlive = (): Promise<boolean> => Promise.race([worker.exited.then(() => false), sleep(1).then(() => true)]);

async function liveRuns(): Promise<number> {
  const { rows } = await system.database.pool.query<{ count: number }>(
    'select count(*)::integer as count from run_work where organization_id = $1',
    [greedy.organizationId],
  );
  return rows[0]!.count;
}

/** Of the last Run of each Thread. */
async function statuses(threads: string[]): Promise<string[]> {
  const runs = await inParallel(threads.length, 4, (i) => getThread(greedy, threads[i]!));
  return runs.map(({ body }) => body.run?.status ?? 'none');
}

/** Claims that ended before their Run. */
async function requeued(reason: RequeueReason): Promise<unknown[]> {
  const { rows } = await system.database.pool.query(
    `select run_id, data from events where type = 'run.requeued' and data ->> 'reason' = $1`,
    [reason],
  );
  return rows as unknown[];
}

/** Looks at the memory of the process again and again. */
function watchMemory({ pid }: SpawnedNode) {
  let mostBytes = 0;
  const timer = setInterval(() => {
    try {
      mostBytes = Math.max(mostBytes, memoryOf(pid, 'VmData'));
    } catch {
      // It has ended, which the test notices by what it does not do.
      clearInterval(timer);
    }
  }, 50);
  return {
    stop: () => {
      clearInterval(timer);
      return mostBytes;
    },
  };
}
