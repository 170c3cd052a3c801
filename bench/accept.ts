import type { Bench } from './bench.ts';
import { withCleanUp } from './clean-up.ts';
import type { FloorApiOptions } from './floor/api.ts';
import type { PlainApiOptions } from './floor/plain-api.ts';
import { PLAIN_SCHEMA } from './floor/plain-store.ts';
import { readAppends } from './recorded-run.ts';
import { createOneThread, install, POOL_SIZE, sideOf, startApi, startFloor, startLoad } from './spool.ts';

const TARGET = { atLeast: 0.9 };
const CONNECTIONS = 32;

/**
 * Measures POST with input on the API alone, without and with an Idempotency-Key. Compares it with a bare Fastify that
 * sends the same statement, and with one that sends a hand-written statement to plain tables.
 */
export function accept({ services, profiled, compare }: Bench): Promise<void> {
  return withCleanUp(async (defer) => {
    const spool = await install(services, defer);
    const api = await startApi(spool, defer, profiled);
    const load = startLoad(defer);
    for (const keyed of [false, true]) {
      const { threadId, answer } = await createOneThread(api.origin, spool, keyed);
      const run = await readAppends(spool.databaseUrl, threadId);
      const poolSize = POOL_SIZE;
      const own: FloorApiOptions = {
        ...{ databaseUrl: await services.newDatabase(defer), poolSize, answer, run },
        queue: null,
      };
      const plainDatabase = await services.newPlainDatabase(defer, PLAIN_SCHEMA);
      const plain: PlainApiOptions = { databaseUrl: plainDatabase, poolSize, answer, ids: run.ids };
      const { agentId, tokens } = spool;
      const side = (origin: string) =>
        sideOf(load, { flow: 'accept', origin, agentId, tokens, keyed, connections: CONNECTIONS });
      await compare(
        {
          name: keyed ? 'accept with an Idempotency-Key' : 'accept',
          clients: CONNECTIONS,
          by: 'perSecond',
          subject: side(api.origin),
          floors: {
            own: side(await startFloor('api', defer).ask<string>(own)),
            independent: side(await startFloor('plain-api', defer).ask<string>(plain)),
          },
          target: TARGET,
        },
        [api],
      );
    }
  });
}
