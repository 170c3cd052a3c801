import type { Bench } from './bench.ts';
import { withCleanUp, type Defer } from './clean-up.ts';
import type { FloorApiOptions } from './floor/api.ts';
import type { FloorWorkerOptions } from './floor/worker.ts';
import type { LoadOrder } from './load/order.ts';
import type { Side } from './measure.ts';
import { readAppends } from './recorded-run.ts';
import type { Services } from './services.ts';
import {
  createOneThread,
  install,
  POOL_SIZE,
  SLOTS,
  startApi,
  startFloor,
  startLoad,
  startWorker,
  untilIdle,
  type Installation,
} from './spool.ts';

const RATE_TARGET = { atLeast: 0.5 };
const LATENCY_TARGET = { atMost: 2.5 };
const MANY = 32;

/** POST to `run.completed` in the client's stream, beside a hand-written loop; and POST to `run.started`. */
export function roundTrip({ services, profiled, compare }: Bench): Promise<void> {
  return withCleanUp(async (defer) => {
    const spool = await install(services, defer);
    const api = await startApi(spool, defer, profiled);
    const worker = startWorker(spool, defer, profiled);
    const load = startLoad(defer);
    const floorOrigin = await startLoop(api.origin, spool, services, defer);

    const { agentId, token } = spool;
    const side = (flow: LoadOrder['flow'], origin: string, connections: number): Side => {
      return (forMs) => load({ flow, origin, agentId, token, keyed: false, connections, forMs });
    };
    const roundTrips = (clients: number) => ({
      clients,
      subject: side('round-trip', api.origin, clients),
      floor: side('round-trip', floorOrigin, clients),
    });
    const parts = [api, worker];
    await compare({ name: 'round trip', by: 'perSecond', target: RATE_TARGET, ...roundTrips(MANY) }, parts);
    await compare({ name: 'round trip', by: 'p50Ms', target: LATENCY_TARGET, ...roundTrips(1) }, parts);
    for (const clients of [1, MANY]) {
      const subject = side('run-started', api.origin, clients);
      await compare({ name: 'POST to run.started', by: 'p50Ms', clients, subject, floor: null }, parts);
    }
  });
}

/** The floor: a bare Fastify and a bare BullMQ worker, which repeat the appends of one real echo Run. */
async function startLoop(origin: string, spool: Installation, services: Services, defer: Defer): Promise<string> {
  const { threadId, answer } = await createOneThread(origin, spool, false);
  await untilIdle(origin, spool, threadId);
  const run = await readAppends(spool.databaseUrl, threadId);
  process.stderr.write(`round-trip: an echo Run is ${run.statements.length} appends\n`);
  const databaseUrl = await services.newDatabase(defer);
  const queue = { redisUrl: spool.redisUrl, name: services.newName() };
  const apiOptions: FloorApiOptions = { databaseUrl, poolSize: POOL_SIZE, run, answer, queue };
  const workerOptions: FloorWorkerOptions = { databaseUrl, poolSize: POOL_SIZE, slots: SLOTS, run, queue };
  await startFloor('worker', defer).ask(workerOptions);
  return startFloor('api', defer).ask<string>(apiOptions);
}
