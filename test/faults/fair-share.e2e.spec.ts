import { setTimeout as pause } from 'node:timers/promises';
import type { AgentManifestInput } from '#agents';
import { QueueControls } from '#run-queue';
import { describeWithRedis, eventually, redisUrl, reportFigure, reportLatency } from '#testing';
import { expectHealthy } from '../support/checks.ts';
import { claimHistory } from '../support/claim-history.ts';
import { createAcknowledged, inParallel, postEvents, type Acknowledged } from '../support/client.ts';
import { isLong, startSystem, upTo, type System } from '../support/system.ts';
import { addTenant, type Tenant } from '../support/tenants.ts';
import { percentile } from '../support/times.ts';

const WORKERS = 2;
const SLOTS_A_WORKER = 8;
const SLOTS = WORKERS * SLOTS_A_WORKER;
/**
 * Of one Run, on the mean: the slot time. Long beside what it takes a slot to have its next one, which is 10 ms alone and up to
 * a sixth of a second where other work keeps both cores busy.
 */
const RUN_MS = isLong ? 3_000 : 2_000;
const LEAST_BUSY = isLong ? 0.95 : 0.9;
/** Of the tenant that queues so many. */
const BACKLOG = isLong ? 10_000 : 12 * SLOTS;
/** Runs of the other, and how often it starts one. */
const STARTS = isLong ? 60 : 8;
const START_EVERY_MS = isLong ? 1_000 : 300;
const WATCH_MS = isLong ? 30_000 : 3_000;
const SAMPLE_EVERY_MS = 20;
const EQUAL_TENANTS = 10;
const BACKLOG_OF_EQUALS = isLong ? 100 : 9;
const AGENT_LIMIT = 4;
const ORGANIZATION_LIMIT = 3;

/** What work there was of each organization at one moment. */
type Sample = { at: number; busy: Map<string, number>; waiting: Map<string, number> };

describeWithRedis(`tenants share ${SLOTS} slots of ${WORKERS} workers (F13)`, () => {
  let system: System;
  let baseUrl: string;
  let controls: QueueControls;

  beforeAll(async () => {
    const env = { WORKER_SLOTS: String(SLOTS_A_WORKER) };
    system = await startSystem({ queueUrl: redisUrl().url, env });
    controls = new QueueControls(system.database.pool, system.env['QUEUE_NAME']!);
    const workers = Array.from({ length: WORKERS }, () => system.startWorker());
    const [{ caller }] = await Promise.all([system.startApi(), ...workers]);
    ({ baseUrl } = caller);
  }, 120_000);

  afterAll(async () => {
    try {
      await expectHealthy(system.database);
    } finally {
      await system.stop();
    }
  });

  const newTenant = (name: string, more: Partial<AgentManifestInput> = {}): Promise<Tenant> =>
    addTenant(system.database.pool, baseUrl, name, more);

  const start = (tenant: Tenant, i = 0): Promise<Acknowledged> =>
    createAcknowledged(tenant, `/think ${Math.round(RUN_MS * lengthOf(i))}ms`);
  const queue = (tenant: Tenant, count: number): Promise<Acknowledged[]> =>
    inParallel(count, 16, (i) => start(tenant, i));

  /** Fills the queues of several organizations before any Run is enqueued, so that all begin at the same time. */
  async function queueAtOnce(tenants: readonly [Tenant, number][]): Promise<Acknowledged[][]> {
    await controls.pauseQueue();
    // So old may be what a process knows of it (queue-controls.ts).
    await pause(2 * 250);
    const queued = [];
    for (const [tenant, count] of tenants) queued.push(await queue(tenant, count));
    await controls.resumeQueue();
    return queued;
  }

  /** Ends what is left of them; many have ended. */
  async function clear(tenant: Tenant, started: readonly Acknowledged[]): Promise<void> {
    const { rows } = await system.database.pool.query<{ runId: string }>('select run_id as "runId" from run_work');
    const left = new Set(rows.map(({ runId }) => runId));
    const rest = started.filter(({ runId }) => left.has(runId)).toReversed();
    await inParallel(rest.length, 16, (i) => postEvents(tenant, rest[i]!.threadId, { type: 'user_interrupt' }));
    const isOver = async () => (await sample()).busy.get(tenant.organizationId) === undefined;
    await eventually(isOver, { what: 'its Runs have ended', timeoutMs: 30_000 });
  }

  async function sample(): Promise<Sample> {
    const { rows } = await system.database.pool.query<{ id: string; busy: number; waiting: number }>(
      `select organization_id as id, count(*) filter (where state = 'leased')::integer as busy,
              count(*) filter (where state <> 'leased')::integer as waiting
       from run_work group by 1`,
    );
    return {
      at: performance.now(),
      busy: new Map(rows.map(({ id, busy }) => [id, busy])),
      waiting: new Map(rows.map(({ id, waiting }) => [id, waiting])),
    };
  }

  /** Many a Run, from the moment on at which so many slots are busy, until so long later or until something is so. */
  async function watch(isOver: (sample: Sample) => boolean, busy = SLOTS): Promise<Sample[]> {
    await eventually(async () => busySlots(await sample()) === busy, {
      what: `${busy} slots are busy`,
      timeoutMs: 20_000,
    });
    const samples = [await sample()];
    while (!isOver(samples.at(-1)!)) {
      await pause(SAMPLE_EVERY_MS);
      samples.push(await sample());
    }
    return samples;
  }
  const forAWhile = (): ((sample: Sample) => boolean) => {
    const end = performance.now() + WATCH_MS;
    return ({ at }) => at >= end;
  };

  /** Starts one Run after the other; answers how long each was queued, milliseconds. */
  async function timeStarts(tenant: Tenant): Promise<{ queuedMs: number[]; started: Acknowledged[] }> {
    const started: Acknowledged[] = [];
    for (let at = performance.now(); started.length < STARTS; at += START_EVERY_MS) {
      await eventually(() => performance.now() >= at, { what: 'the next is due', timeoutMs: 2 * START_EVERY_MS });
      started.push(await start(tenant));
    }
    const ids = started.map(({ runId }) => runId);
    const read = async (): Promise<number[] | null> => {
      const { rows } = await system.database.pool.query<{ ms: number | null }>(
        `select extract(epoch from started_at - created_at)::float8 * 1000 as ms from run_summaries where run_id = any ($1)`,
        [ids],
      );
      const times = rows.flatMap(({ ms }) => ms ?? []);
      return times.length === STARTS ? times : null;
    };
    // Far longer than it may take: how long it took is told below.
    return { queuedMs: await eventually(read, { what: 'all have started', timeoutMs: 60_000 }), started };
  }

  test(
    `one alone has every slot, and its backlog of ${BACKLOG} holds up nobody else`,
    async () => {
      const [many, few] = [await newTenant('many'), await newTenant('few')];
      const alone = (await timeStarts(few)).queuedMs;
      const [backlog] = await queueAtOnce([[many, BACKLOG]]);
      const samples = await watch(forAWhile());
      const beside = (await timeStarts(few)).queuedMs;
      const after = await sample();
      tell(
        `${SLOTS} slots of one tenant, busy ${percent(busyShare(samples))}, all at once in ${percent(allBusy(samples))} of ${samples.length} samples`,
        `another tenant's start, p95 of ${STARTS}: ${p95(beside).toFixed(0)} ms beside ${BACKLOG} queued, ` +
          `${p95(alone).toFixed(0)} ms alone; a Run takes ${RUN_MS} ms`,
      );
      // Else it would say nothing.
      for (const { waiting } of [...samples, after]) expect(waiting.get(many.organizationId)).toBeGreaterThan(SLOTS);
      await clear(many, backlog!);
      expectAllInUse(samples);
      reportLatency(2 * p95(alone) + RUN_MS, beside, 'another tenant’s Runs, at p95, began after', 0.95);
    },
    upTo(90_000),
  );

  test(
    `${EQUAL_TENANTS} equal ones with a backlog each have equal shares (Jain's index)`,
    async () => {
      const tenants = await Promise.all(Array.from({ length: EQUAL_TENANTS }, (_, i) => newTenant(`equal ${i}`)));
      const queued = await queueAtOnce(tenants.map((tenant) => [tenant, BACKLOG_OF_EQUALS]));
      const hasNone = ({ waiting }: Sample) =>
        tenants.some(({ organizationId }) => (waiting.get(organizationId) ?? 0) === 0);
      await watch(hasNone);
      const completed = await Promise.all(queued.map(countCompleted));
      const index = jain(completed);
      tell(
        `Runs completed of ${EQUAL_TENANTS} equal tenants: ${completed.join(', ')}; Jain's index ${index.toFixed(3)}`,
      );
      expect(Math.min(...completed)).toBeGreaterThan(0);
      expect(index).toBeGreaterThanOrEqual(0.95);
      for (const [i, tenant] of tenants.entries()) await clear(tenant, queued[i]!);
    },
    upTo(90_000),
  );

  async function countCompleted(runs: readonly Acknowledged[]): Promise<number> {
    const { rows } = await system.database.pool.query<{ count: number }>(
      `select count(*)::integer as count from run_summaries where status = 'completed' and run_id = any ($1)`,
      [runs.map(({ runId }) => runId)],
    );
    return rows[0]!.count;
  }

  test(
    'limits of an agent and of an organization are never passed, their places refilled at once, and no slot idles',
    async () => {
      const byAgent = await newTenant('limited agent', { concurrency: { runs: AGENT_LIMIT } });
      const byOrganization = await newTenant('limited organization');
      await system.database.pool.query('update organizations set max_runs = $2 where id = $1', [
        byOrganization.organizationId,
        ORGANIZATION_LIMIT,
      ]);
      const limited: [Tenant, number][] = [
        [byAgent, AGENT_LIMIT],
        [byOrganization, ORGANIZATION_LIMIT],
      ];
      const places = AGENT_LIMIT + ORGANIZATION_LIMIT;
      const rounds = Math.ceil((4 * WATCH_MS) / RUN_MS);
      const queued = await queueAtOnce(limited.map(([tenant, limit]) => [tenant, limit * rounds]));
      // Slots are free: only the limits are in the way.
      const alone = await watch(forAWhile(), places);
      const idle: number[] = [];
      for (const [tenant, limit] of limited) {
        const idleMs = await idlePerClaim(alone, tenant, limit);
        tell(`limit ${limit}: a place was empty for ${idleMs.toFixed(0)} ms between two Runs of ${RUN_MS} ms`);
        idle.push(idleMs);
      }

      const free = await newTenant('free');
      queued.push(await queue(free, (SLOTS - places) * rounds));
      const beside = await watch(forAWhile());
      tell(`all ${SLOTS} slots beside the limited ones: busy ${percent(busyShare(beside))}`);
      for (const [tenant, limit] of limited) {
        const busy = [...alone, ...beside].map((one) => one.busy.get(tenant.organizationId) ?? 0);
        const history = await claimHistory(system.database.pool, tenant.organizationId);
        tell(`limit ${limit}: ${Math.max(...busy)} at most in samples, ${history.most} in ${history.claims} claims`);
        expect([Math.max(...busy), history.most]).toEqual([limit, limit]);
      }
      const tenants = [byAgent, byOrganization, free];
      // Else it would say nothing.
      for (const { organizationId } of tenants) expect(beside.at(-1)!.waiting.get(organizationId)).toBeGreaterThan(0);
      for (const [i, tenant] of tenants.entries()) await clear(tenant, queued[i]!);
      expectAllInUse(beside);
      reportLatency(RUN_MS / 4, idle, 'a place was empty for');
    },
    upTo(90_000),
  );

  /** For how long a place that a limit allows was empty, on the mean, before it was taken again, milliseconds. */
  async function idlePerClaim(samples: readonly Sample[], { organizationId }: Tenant, limit: number): Promise<number> {
    const { rows } = await system.database.pool.query<{ runMs: number }>(
      `select avg(extract(epoch from completed_at - started_at))::float8 * 1000 as "runMs"
       from run_summaries join thread_summaries using (thread_id)
       where organization_id = $1 and run_summaries.status = 'completed'`,
      [organizationId],
    );
    const places = mean(samples, ({ busy }) => busy.get(organizationId) ?? 0);
    // A place is taken by one Run after the other, each for its time.
    return rows[0]!.runMs * (limit / places - 1);
  }
});

const busySlots = ({ busy }: Sample): number => [...busy.values()].reduce((sum, one) => sum + one, 0);
const busyShare = (samples: readonly Sample[]): number => mean(samples, busySlots) / SLOTS;

/** Over the time between the first and the last. */
function mean(samples: readonly Sample[], of: (sample: Sample) => number): number {
  const parts = samples.slice(1).map((next, i) => of(samples[i]!) * (next.at - samples[i]!.at));
  return parts.reduce((sum, one) => sum + one) / (samples.at(-1)!.at - samples[0]!.at);
}

const allBusy = (samples: readonly Sample[]): number =>
  samples.filter((one) => busySlots(one) === SLOTS).length / samples.length;

/** The longest time from one sample in which all slots were busy to the next, milliseconds. */
function longestNotAllBusy(samples: readonly Sample[]): number {
  const times = samples.filter((one) => busySlots(one) === SLOTS).map(({ at }) => at);
  const ends = [...times, samples.at(-1)!.at];
  return Math.max(...ends.map((at, i) => at - (ends[i - 1] ?? samples[0]!.at)));
}

function expectAllInUse(samples: readonly Sample[]): void {
  reportLatency(
    (1 - LEAST_BUSY) * RUN_MS,
    (1 - busyShare(samples)) * RUN_MS,
    'in the time of a Run a slot was idle for',
  );
  // Every slot, again and again: in each Run's time there is a moment at which all are busy.
  reportLatency(RUN_MS, longestNotAllBusy(samples), 'not all slots were busy for');
}

/** From half to one and a half, one on the mean: were all of one length, all slots would be free at the same moment. */
const lengthOf = (i: number): number => 0.5 + ((0.5 + i * 0.618) % 1);

const jain = (shares: readonly number[]): number =>
  shares.reduce((sum, one) => sum + one) ** 2 / (shares.length * shares.reduce((sum, one) => sum + one ** 2, 0));

const p95 = (times: readonly number[]): number => percentile(times, 0.95);

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

function tell(...lines: string[]): void {
  for (const line of lines) reportFigure(`F13: ${line}`);
}
