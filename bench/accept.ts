import type { Bench } from './bench.ts';
import { withCleanUp } from './clean-up.ts';
import type { FloorApiOptions } from './floor/api.ts';
import type { LoadOrder } from './load/order.ts';
import { readAppends } from './recorded-run.ts';
import { createOneThread, install, POOL_SIZE, startApi, startFloor, startLoad } from './spool.ts';

const TARGET = { atLeast: 0.5 };
const CONNECTIONS = 32;

/** POST with input, the API alone, beside a bare Fastify that sends the same statement. */
export async function accept(bench: Bench): Promise<void> {
  for (const keyed of [false, true]) await acceptOnce(bench, keyed);
}

function acceptOnce({ services, profiled, compare }: Bench, keyed: boolean): Promise<void> {
  return withCleanUp(async (defer) => {
    const spool = await install(services, defer);
    const floorDatabase = await services.newDatabase(defer);
    const api = await startApi(spool, defer, profiled);
    const floor = startFloor('api', defer);
    const load = startLoad(defer);
    const { threadId, answer } = await createOneThread(api.origin, spool, keyed);
    const options: FloorApiOptions = {
      databaseUrl: floorDatabase,
      poolSize: POOL_SIZE,
      run: await readAppends(spool.databaseUrl, threadId),
      answer,
      queue: null,
    };
    const floorOrigin = await floor.ask<string>(options);
    const { agentId, token } = spool;
    const order: Omit<LoadOrder, 'origin' | 'forMs'> = {
      flow: 'accept',
      agentId,
      token,
      keyed,
      connections: CONNECTIONS,
    };
    await compare(
      {
        name: keyed ? 'accept with an Idempotency-Key' : 'accept',
        clients: CONNECTIONS,
        by: 'perSecond',
        subject: (forMs) => load({ ...order, origin: api.origin, forMs }),
        floor: (forMs) => load({ ...order, origin: floorOrigin, forMs }),
        target: TARGET,
      },
      [api],
    );
  });
}
