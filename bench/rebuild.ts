import pg, { type Pool, type PoolClient, type QueryConfig } from 'pg';
import { CommandHandler, ThreadStore } from '#event-store';
import { openDatabase } from '#platform';
import { rebuild as rebuildProjections } from '#projections';
import type { Bench } from './bench.ts';
import { withCleanUp } from './clean-up.ts';
import { EVENTS_A_THREAD, makeManyThreads } from './many-threads.ts';
import type { Figures, Side } from './measure.ts';
import { SIZES } from './sizes.ts';
import { LEASE_MS } from './threads.ts';

const EVENTS = SIZES.rebuildEvents;

/**
 * Rebuilding a million events, in events a second, beside sending the same reading statements through node-pg and doing
 * nothing with the rows; once where nothing differs, and once where all summaries are lost.
 */
export function rebuild({ services, compare }: Bench): Promise<void> {
  return withCleanUp(async (defer) => {
    const url = await services.newDatabase(defer);
    const database = await openDatabase({
      url,
      applicationName: 'bench',
      maxConnections: 2,
      statementTimeoutMs: 0,
    });
    defer(() => database.close());
    const { pool } = database;
    const handler = new CommandHandler({ store: new ThreadStore(pool), leaseMs: LEASE_MS });
    await makeManyThreads(pool, handler, EVENTS / EVENTS_A_THREAD);
    await services.asOwner(url, 'vacuum analyze');
    const reads = await recordReads(pool);
    const reader = new pg.Client({ connectionString: url, options: '-c timezone=UTC' });
    await reader.connect();
    defer(() => reader.end());
    const floors = {
      own: timed(async () => {
        for (const read of reads) await reader.query(read);
      }),
    };

    const name = `rebuild of ${EVENTS.toLocaleString('en')} events`;
    await compare({ name, clients: 1, by: 'perSecond', subject: timed(() => rebuildAll(pool, 0)), floors });
    const summaries = (EVENTS / EVENTS_A_THREAD) * 3;
    const losing: Side = async (forMs) => {
      await services.asOwner(url, 'truncate thread_summaries, run_summaries');
      return timed(() => rebuildAll(pool, summaries))(forMs);
    };
    await compare({ name: `${name}, all summaries lost`, clients: 1, by: 'perSecond', subject: losing, floors });
  });
}

/** A round is one whole pass, however long it takes. */
function timed(pass: () => Promise<void>): Side {
  return async (): Promise<Figures> => {
    const start = performance.now();
    await pass();
    return { perSecond: EVENTS / ((performance.now() - start) / 1_000), p50Ms: NaN, p99Ms: NaN };
  };
}

async function rebuildAll(pool: Pool, expectedDifferences: number): Promise<void> {
  const { events, differences, left } = await rebuildProjections(pool);
  if (events !== EVENTS || differences !== expectedDifferences || left > 0) {
    throw new Error(`rebuilt ${events} events with ${differences} differences, ${left} left`);
  }
}

/** The statements by which a rebuild reads, as it sends them. */
async function recordReads(pool: Pool): Promise<QueryConfig[]> {
  const reads: QueryConfig[] = [];
  const connect = async (): Promise<PoolClient> => {
    const client = await pool.connect();
    const query = (statement: string | QueryConfig, ...more: unknown[]): unknown => {
      if (typeof statement === 'object' && statement.name?.startsWith('read-')) reads.push(statement);
      return (client.query as (...parameters: unknown[]) => unknown).call(client, statement, ...more);
    };
    const release = (error?: Error | boolean): void => client.release(error);
    return { query, release } as unknown as PoolClient;
  };
  await rebuildAll({ connect } as unknown as Pool, 0);
  return reads;
}
