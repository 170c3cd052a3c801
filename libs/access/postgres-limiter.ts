import type { Pool } from 'pg';
import { RateLimiterPostgres, type IRateLimiterStoreOptions } from 'rate-limiter-flexible';
import { namedStatement, Semaphore } from '#platform';

const COUNT_REQUEST = namedStatement(import.meta.dirname, 'count-request.sql');

/** Of the pool's connections: many requests of one token wait for one row, and must not take all with them. */
const AT_ONCE = 3;

/** The library's limiter with a statement of our own: its takes the clocks of the processes, which may be minutes apart. */
export class PostgresLimiter extends RateLimiterPostgres {
  private readonly turns = new Semaphore(AT_ONCE);

  constructor(
    private readonly pool: Pool,
    options: Omit<IRateLimiterStoreOptions, 'storeClient'>,
  ) {
    const table = { tableName: 'rate_limits', tableCreated: true, clearExpiredByTimeout: false };
    super({ ...options, ...table, storeClient: pool, storeType: 'pool' });
  }

  /** Called by the library for each request that it counts; answers as its own does, in our time. */
  async _upsert(
    key: string,
    points: number,
    msDuration: number,
  ): Promise<{ rows: { points: number; expire: number }[] }> {
    const values = [key, points, msDuration / 1_000];
    const { rows } = await this.turns.take(() =>
      this.pool.query<{ points: number; leftMs: number }>({ ...COUNT_REQUEST, values }),
    );
    return { rows: rows.map(({ points: counted, leftMs }) => ({ points: counted, expire: Date.now() + leftMs })) };
  }
}
