import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from 'pg';
import { QueueControls } from '#run-queue';
import { describeWithRedis, eventually, redisUrl, reportLatency } from '#testing';
import { expectHealthy } from '../support/checks.ts';
import { createAcknowledged } from '../support/client.ts';
import { freshSeed, seededRandom, type Random } from '../support/random.ts';
import { isLong, startSystem, upTo, type System } from '../support/system.ts';
import { addReadyRuns, addTenant, type Tenant } from '../support/tenants.ts';
import { percentile } from '../support/times.ts';

// Real: PostgreSQL, the queue, one API and two workers, each a process of its own.

const WORKERS = 2;
const SLOTS_A_WORKER = 16;
const SLOTS = WORKERS * SLOTS_A_WORKER;
const BACKLOG = 10_000;
const [SHORTEST_MS, LONGEST_MS] = [1_000, 5_000];
const MEAN_MS = (SHORTEST_MS + LONGEST_MS) / 2;
const LONG_RUN_MS = 15_000;
const LONG_RUNS = 160;
const CAP_PERCENT = 90;
const CAP = 28;
/** The number of Runs of the other tenant, and the time between two starts. */
const STARTS = isLong ? 120 : 30;
const START_EVERY_MS = 500;
/** From the moment at which all slots are first in use: workers compile their code, and PostgreSQL writes the backlog out. */
const WARM_UP_MS = 10_000;
const WATCH_MS = isLong ? 30_000 : 8_000;
const SAMPLE_EVERY_MS = 50;
/** The share of the slots that may be idle. */
const MOST_IDLE = 0.01;

let system: System;
let controls: QueueControls;
let baseUrl: string;

async function start(queueUrl: string | undefined, env: Record<string, string> = {}): Promise<void> {
  system = await startSystem({
    ...(queueUrl !== undefined && { queueUrl }),
    env: { WORKER_SLOTS: String(SLOTS_A_WORKER), ...env },
  });
  controls = new QueueControls(system.database.pool, system.env['QUEUE_NAME']!);
  const workers = Array.from({ length: WORKERS }, () => system.startWorker());
  const [api] = await Promise.all([system.startApi(), ...workers]);
  ({ baseUrl } = api.caller);
}

const pool = (): Pool => system.database.pool;

/** Gives a tenant ready Runs of these lengths, and begins them all at once. */
async function startBacklog(lengths: readonly number[]): Promise<Tenant> {
  const many = await addTenant(pool(), baseUrl, 'many');
  await controls.pauseQueue();
  // A process may know a state that is this old (queue-controls.ts).
  await pause(2 * 250);
  await addReadyRuns(pool(), many, lengths);
  await controls.resumeQueue();
  return many;
}

/** Also while Runs are under way. */
async function stopHealthy(): Promise<void> {
  try {
    await expectHealthy(system.database);
  } finally {
    await system.stop();
  }
}

async function slotsOf({ organizationId }: Tenant): Promise<number> {
  const { rows } = await pool().query<{ count: number }>(
    `select count(*)::integer as count from run_work where state = 'leased' and organization_id = $1`,
    [organizationId],
  );
  return rows[0]!.count;
}

/** Samples the number of the tenant's slots for a while. */
async function watchSlots(tenant: Tenant, ms: number): Promise<number[]> {
  const samples: number[] = [];
  for (const end = performance.now() + ms; performance.now() < end; await pause(SAMPLE_EVERY_MS))
    samples.push(await slotsOf(tenant));
  return samples;
}

/** Resolves with the time of the database. */
async function databaseTime(): Promise<Date> {
  const { rows } = await pool().query<{ now: Date }>('select clock_timestamp() as now');
  return rows[0]!.now;
}

/** Returns the slots that the tenant had on the mean from now on for so long, by the claims and ends in its streams. */
async function meanSlots({ organizationId }: Tenant, ms: number): Promise<number> {
  const from = await databaseTime();
  await pause(ms);
  const to = await databaseTime();
  const { rows } = await pool().query<{ slots: number }>(
    `select sum(extract(epoch from least(coalesce(ended.at, $3), $3) - greatest(claim.occurred_at, $2)))::float8
              / extract(epoch from $3::timestamptz - $2)::float8 as slots
     from thread_summaries
     join events as claim using (thread_id)
     left join lateral (
       select min(occurred_at) as at from events
       where thread_id = claim.thread_id and version > claim.version and type = 'run.completed'
     ) as ended on true
     where organization_id = $1 and claim.type = 'run.claimed' and claim.occurred_at < $3
       and coalesce(ended.at, $3) > $2`,
    [organizationId, from, to],
  );
  return rows[0]!.slots;
}

/** Starts one Run after the other; returns how long each was queued, milliseconds. */
async function timeStarts(tenant: Tenant, lengthOf: () => number): Promise<number[]> {
  const ids: string[] = [];
  for (let at = performance.now(); ids.length < STARTS; at += START_EVERY_MS) {
    await eventually(() => performance.now() >= at, { what: 'the next is due', timeoutMs: 2 * START_EVERY_MS });
    ids.push((await createAcknowledged(tenant, `/think ${lengthOf()}ms`)).runId);
  }
  const read = async (): Promise<number[] | null> => {
    const { rows } = await pool().query<{ ms: number }>(
      `select extract(epoch from started_at - created_at)::float8 * 1000 as ms
       from run_summaries where run_id = any ($1) and started_at is not null`,
      [ids],
    );
    return rows.length === STARTS ? rows.map(({ ms }) => ms) : null;
  };
  // Far longer than it may take. The measured time is checked below.
  return eventually(read, { what: 'all have started', timeoutMs: 60_000 });
}

const anyLength = (random: Random): number => SHORTEST_MS + random.below(LONGEST_MS - SHORTEST_MS + 1);

function tell(line: string): void {
  process.stderr.write(`F13: ${line}\n`);
}

function describeBacklog(queueUrl: () => string | undefined, where: string): void {
  test(
    `beside a backlog of ${BACKLOG} Runs, another tenant’s Runs start (${where})`,
    async () => {
      const random = seededRandom(freshSeed(), `lengths of ${BACKLOG} Runs`);
      await start(queueUrl());
      try {
        const lengths = Array.from({ length: BACKLOG }, () => anyLength(random));
        const [few, many] = [await addTenant(pool(), baseUrl, 'few'), await startBacklog(lengths)];
        await eventually(async () => (await slotsOf(many)) === SLOTS, {
          what: 'all slots are busy',
          timeoutMs: 30_000,
        });
        await pause(WARM_UP_MS);
        const share = (await meanSlots(many, WATCH_MS)) / SLOTS;
        const queued = await timeStarts(few, () => anyLength(random));
        const [p50, p95] = [percentile(queued, 0.5), percentile(queued, 0.95)];
        tell(
          `${where}: ${(100 * share).toFixed(2)} % of ${SLOTS} slots in use by one tenant; another's ${STARTS} starts: ` +
            `p50 ${p50.toFixed(0)} ms, p95 ${p95.toFixed(0)} ms, longest ${Math.max(...queued).toFixed(0)} ms`,
        );
        reportLatency(500, queued, 'another tenant’s Runs, at p95, began after', 0.95);
        reportLatency(MOST_IDLE * MEAN_MS, (1 - share) * MEAN_MS, 'between two Runs a slot was idle for');
      } finally {
        await stopHealthy();
      }
    },
    upTo(150_000),
  );
}

function describeCap(queueUrl: () => string | undefined, where: string): void {
  test(
    `beside ${LONG_RUNS} Runs of ${LONG_RUN_MS / 1_000} s and a cap of ${CAP_PERCENT} %, another tenant’s Runs start (${where})`,
    async () => {
      await start(queueUrl(), { SLOTS_PERCENT_PER_ORGANIZATION: String(CAP_PERCENT) });
      try {
        const few = await addTenant(pool(), baseUrl, 'few');
        const many = await startBacklog(Array.from({ length: LONG_RUNS }, () => LONG_RUN_MS));
        await eventually(async () => (await slotsOf(many)) === CAP, { what: 'the cap is reached', timeoutMs: 30_000 });
        const [queued, samples] = await Promise.all([
          timeStarts(few, () => SHORTEST_MS),
          watchSlots(many, STARTS * START_EVERY_MS),
        ]);
        const longest = Math.max(...queued);
        tell(
          `${where}: beside Runs of ${LONG_RUN_MS} ms and a cap of ${CAP_PERCENT} %: another's ${STARTS} starts: ` +
            `p95 ${percentile(queued, 0.95).toFixed(0)} ms, longest ${longest.toFixed(0)} ms`,
        );
        expect(Math.max(...samples)).toBe(CAP);
        reportLatency(2_000, queued, 'another tenant’s Run began after');
      } finally {
        await stopHealthy();
      }
    },
    upTo(120_000),
  );
}

describe(`${SLOTS} slots of ${WORKERS} workers, shared in time (F13)`, () => {
  describeBacklog(() => undefined, 'the queue in PostgreSQL');
  describeCap(() => undefined, 'the queue in PostgreSQL');
});

describeWithRedis(`${SLOTS} slots of ${WORKERS} workers, shared in time, with Redis (F13)`, () => {
  describeBacklog(() => redisUrl().url, 'the queue in Redis');
  describeCap(() => redisUrl().url, 'the queue in Redis');
});
