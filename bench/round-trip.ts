import type { Bench } from './bench.ts';
import { withCleanUp, type Defer } from './clean-up.ts';
import type { FloorApiOptions } from './floor/api.ts';
import type { ComposedWorkerOptions } from './floor/composed-worker.ts';
import type { ComposedQuestion } from './floor/composed.ts';
import { FACTS_OF_A_RUN } from './floor/plain-facts.ts';
import { PLAIN_SCHEMA } from './floor/plain-store.ts';
import type { FloorWorkerOptions } from './floor/worker.ts';
import type { LoadOrder } from './load/order.ts';
import type { Figures, Side } from './measure.ts';
import { readAppends } from './recorded-run.ts';
import type { Services } from './services.ts';
import {
  createOneThread,
  install,
  POOL_SIZE,
  sideOf,
  SLOTS,
  startApi,
  startFloor,
  startLoad,
  startWorker,
  untilIdle,
  type Installation,
} from './spool.ts';

/** Targets refer to the own floor, where there is one. */
const RATE_TARGET = { atLeast: 1 };
const LATENCY_TARGET = { atMost: 1.8 };
const MANY = 32;

/**
 * Measures the time from the POST to `run.completed` in the client's stream. Compares it with a hand-written loop over HTTP
 * and with a composed loop without HTTP. Also measures the time to the first text and to `run.started`.
 */
export function roundTrip({ services, profiled, compare }: Bench): Promise<void> {
  return withCleanUp(async (defer) => {
    const spool = await install(services, defer);
    const api = await startApi(spool, defer, profiled);
    const worker = startWorker(spool, defer, profiled);
    const load = startLoad(defer);
    const ownOrigin = await startOwnFloor(api.origin, spool, services, defer);
    const composed = await startComposed(services, spool.redisUrl, defer);

    const { agentId, tokens } = spool;
    const side = (flow: LoadOrder['flow'], origin: string, connections: number) =>
      sideOf(load, { flow, origin, agentId, tokens, keyed: false, connections });
    const roundTrips = (clients: number) => ({
      clients,
      subject: side('round-trip', api.origin, clients),
      floors: { own: side('round-trip', ownOrigin, clients), independent: composed(clients) },
    });
    const parts = [api, worker];
    await compare({ name: 'round trip', by: 'perSecond', target: RATE_TARGET, ...roundTrips(MANY) }, parts);
    await compare({ name: 'round trip', by: 'p50Ms', target: LATENCY_TARGET, ...roundTrips(1) }, parts);
    for (const clients of [1, MANY]) {
      const subject = side('first-text', api.origin, clients);
      const floors = { independent: composed(clients) };
      await compare({ name: 'POST to first text', by: 'p50Ms', clients, subject, floors }, parts);
    }
    for (const clients of [1, MANY]) {
      const subject = side('run-started', api.origin, clients);
      await compare({ name: 'POST to run.started', by: 'p50Ms', clients, subject, floors: {} }, parts);
    }
  });
}

/** Starts the own floor: a bare Fastify and a bare BullMQ worker that repeat the appends of one real echo Run. */
async function startOwnFloor(origin: string, spool: Installation, services: Services, defer: Defer): Promise<string> {
  const { threadId, answer } = await createOneThread(origin, spool, false);
  await untilIdle(origin, spool, threadId);
  const run = await readAppends(spool.databaseUrl, threadId);
  process.stderr.write(`round-trip: an echo Run is ${run.statements.length} appends\n`);
  if (run.types.join() !== FACTS_OF_A_RUN.join()) {
    throw new Error(`An echo Run stores ${run.types.join(', ')}; change bench/floor/plain-facts.ts to store the same.`);
  }
  const databaseUrl = await services.newDatabase(defer);
  const queue = { redisUrl: spool.redisUrl, name: services.newName() };
  const apiOptions: FloorApiOptions = { databaseUrl, poolSize: POOL_SIZE, run, answer, queue };
  const workerOptions: FloorWorkerOptions = { databaseUrl, poolSize: POOL_SIZE, slots: SLOTS, run, queue };
  await startFloor('worker', defer).ask(workerOptions);
  return startFloor('api', defer).ask<string>(apiOptions);
}

/** Starts the independent floor: plain tables, one job and one notification a Run, without HTTP. */
async function startComposed(services: Services, redisUrl: string, defer: Defer): Promise<(clients: number) => Side> {
  const databaseUrl = await services.newPlainDatabase(defer, PLAIN_SCHEMA);
  const queue = { redisUrl, name: services.newName() };
  const options = { databaseUrl, poolSize: POOL_SIZE, queue };
  const workerOptions: ComposedWorkerOptions = { ...options, slots: SLOTS };
  await startFloor('composed-worker', defer).ask(workerOptions);
  const floor = startFloor('composed', defer);
  const ask = <Answer>(question: ComposedQuestion) => floor.ask<Answer>(question);
  await ask({ start: options });
  return (clients) => (forMs) => ask<Figures>({ clients, forMs });
}
