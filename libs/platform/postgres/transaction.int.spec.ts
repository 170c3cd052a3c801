import { createTestDatabase, faultProxy, type FaultProxy, type TestDatabase } from '#testing';
import { isDatabaseUnavailable, openDatabase, type Database } from './database.ts';
import { inTransaction } from './transaction.ts';

// Real: PostgreSQL, and a TCP proxy that stops passing bytes.

let own: TestDatabase;
let proxy: FaultProxy;
let database: Database;

beforeAll(async () => {
  own = await createTestDatabase();
  proxy = await faultProxy(Number(new URL(own.url).port || 5432));
  database = await openDatabase({ url: proxy.through(own.url), applicationName: 'test', maxConnections: 1 });
});
afterAll(async () => {
  await database.close();
  await proxy.close();
  await own.drop();
});

test.each(['ends the connection', 'does not respond'])(
  'throws the error of the work if PostgreSQL %s at the rollback, and lends the connection no more',
  async (how) => {
    const error = new Error('the work failed');
    const client = await database.pool.connect();
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    const work = async (): Promise<never> => {
      if (how === 'does not respond') proxy.stall();
      else await client.query('select pg_terminate_backend(pg_backend_pid())').catch(() => undefined);
      throw error;
    };
    await expect(inTransaction(client, work, { timeoutMs: 200 })).rejects.toBe(error);
    expect(isDatabaseUnavailable(error.cause)).toBe(true);
    client.release();
    proxy.resume();
    const next = await database.pool.query<{ pid: number }>('select pg_backend_pid() as pid');
    expect(next.rows[0]?.pid).not.toBe(rows[0]?.pid);
  },
);
