import type { Pool } from 'pg';
import { RateLimiterPostgres, type IRateLimiterStoreOptions } from 'rate-limiter-flexible';
import { namedStatement, Semaphore } from '#platform';

const COUNT_REQUEST = namedStatement(import.meta.dirname, 'count-request.sql');

/** The maximum of pool connections in use. Many requests of one token wait for one row and must not take all connections. */
const AT_ONCE = 3;

/** The library's limiter with its own statement, because the library uses process clocks, which can differ by minutes. */
export class PostgresLimiter extends RateLimiterPostgres {
  private readonly connections = new Semaphore(AT_ONCE);

  constructor(
    private readonly pool: Pool,
    options: Omit<IRateLimiterStoreOptions, 'storeClient'>,
  ) {
    const table = { tableName: 'rate_limits', tableCreated: true, clearExpiredByTimeout: false };
    super({ ...options, ...table, storeClient: pool, storeType: 'pool' });
  }

  /** Called by the library for each counted request. Returns the end of the window by the clock of this process. */
  async _upsert(
    key: string,
    points: number,
    msDuration: number,
  ): Promise<{ rows: { points: number; expire: number }[] }> {
    const values = [key, points, msDuration / 1_000];
    const { rows } = await this.connections.take(() =>
      this.pool.query<{ points: number; leftMs: number }>({ ...COUNT_REQUEST, values }),
    );
    return { rows: rows.map(({ points: counted, leftMs }) => ({ points: counted, expire: Date.now() + leftMs })) };
  }
}
