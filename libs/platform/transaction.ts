import type { Pool, PoolClient } from 'pg';
import { DatabaseAway, isDatabaseAway } from './database.ts';

/** A pool, or a connection with a transaction of the caller's. */
export type Queryable = Pick<Pool, 'query'>;

export interface TransactionOptions<T> {
  /** Whether to commit what the work came to; else it is rolled back. Default: always. */
  keeps?: (result: T) => boolean;
  /** For `begin`, `commit` and `rollback` each, milliseconds. */
  timeoutMs?: number | undefined;
  /** Statements sent with `begin`. */
  settings?: string;
}

/** Runs the work in a transaction of its own. Throws what the work throws, rolled back where there still is a connection. */
export async function inTransaction<T>(
  client: PoolClient,
  work: () => Promise<T>,
  { keeps = () => true, timeoutMs, settings }: TransactionOptions<T> = {},
): Promise<T> {
  const limit = timeoutMs === undefined ? {} : { query_timeout: timeoutMs };
  const send = async (text: string): Promise<void> => void (await client.query({ text, ...limit }));
  await send(settings === undefined ? 'begin' : `begin; ${settings}`);
  try {
    const result = await work();
    await send(keeps(result) ? 'commit' : 'rollback');
    return result;
  } catch (error) {
    if (!isDatabaseAway(error)) await send('rollback');
    throw error;
  }
}

/** The same on a connection of the pool. Throws DatabaseAway: then it may have been committed. */
export async function transact<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect().catch(throwAway);
  let broken = false;
  try {
    return await inTransaction(client, () => work(client));
  } catch (error) {
    broken = isDatabaseAway(error);
    return throwAway(error);
  } finally {
    client.release(broken);
  }
}

/** For a `catch`: what says that the database is away, as DatabaseAway; everything else as it is. */
export function throwAway(error: unknown): never {
  throw isDatabaseAway(error) ? new DatabaseAway(error) : error;
}
