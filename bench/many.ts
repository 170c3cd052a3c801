import pg from 'pg';
import { AccessStore } from '#access';
import { seedManyThreads } from '#testing';
import type { Bench } from './bench.ts';
import { withCleanUp, type Defer } from './clean-up.ts';
import type { LoadOrder } from './load/order.ts';
import type { Services } from './services.ts';
import { SIZES } from './sizes.ts';
import { sideOf, startApi, startLoad } from './spool.ts';

const TARGET = { atMost: 1.2 };

/**
 * Creates Threads and lists the newest Threads of a person, in a database with many Threads of 20 events. Compares it with a database
 * of a few.
 */
export function many({ services, profiled, compare }: Bench): Promise<void> {
  return withCleanUp(async (defer) => {
    const load = startLoad(defer);
    const few = await startSeeded(services, SIZES.fewThreads, defer, profiled);
    const lots = await startSeeded(services, SIZES.manyThreads, defer, profiled);
    const side = (flow: LoadOrder['flow'], order: SeededOrder) =>
      sideOf(load, { ...order, flow, keyed: false, connections: 1 });
    const beside = `${SIZES.manyThreads.toLocaleString('en')} Threads beside ${SIZES.fewThreads.toLocaleString('en')}`;
    for (const [name, flow] of [
      ['create', 'accept'],
      ['list', 'list'],
    ] as const) {
      const subject = side(flow, lots);
      const floors = { own: side(flow, few) };
      await compare({ name: `${name}, ${beside}`, clients: 1, by: 'p50Ms', subject, floors, target: TARGET });
    }
  });
}

type SeededOrder = Pick<LoadOrder, 'origin' | 'agentId' | 'tokens'>;

/** Starts an API on a database with so many Threads of one person. */
async function startSeeded(services: Services, threads: number, defer: Defer, profiled: boolean): Promise<SeededOrder> {
  const { redisUrl } = services;
  if (redisUrl === null) throw new Error('This benchmark needs Redis: set REDIS_URL');
  const databaseUrl = await services.newDatabase(defer);
  const pool = new pg.Pool({ connectionString: services.ownerUrlOf(databaseUrl), max: 2, options: '-c timezone=UTC' });
  try {
    const startedAt = performance.now();
    const { agentIds, personId } = await seedManyThreads(pool, { threads });
    const seconds = (performance.now() - startedAt) / 1_000;
    const { rows } = await pool.query<{ events: number; bytes: number }>(
      `select reltuples as events, pg_database_size(current_database())::float8 as bytes from pg_class where relname = 'events'`,
    );
    const { events, bytes } = rows[0]!;
    const size = `${events} events, ${(bytes / events).toFixed(0)} bytes each with all indices and other tables`;
    process.stderr.write(`many: ${threads} Threads made in ${seconds.toFixed(0)} s: ${size}\n`);
    const { token } = await new AccessStore(pool).mintToken({ kind: 'person', personId, name: 'bench' });
    const [agentId = ''] = agentIds;
    const installed = { databaseUrl, redisUrl, queueName: services.newName(), agentId, tokens: [token] };
    const { origin } = await startApi(installed, defer, profiled);
    return { origin, agentId, tokens: [token] };
  } finally {
    await pool.end();
  }
}
