import type { ClientBase, Pool, PoolClient } from 'pg';
import { DatabaseUnavailable, isDatabaseUnavailable } from './database.ts';
import { queryTimeout } from './sql.ts';

/** A pool, or a connection in a transaction of the caller. */
export type Queryable = Pick<Pool, 'query'>;

export interface TransactionOptions<T> {
  /** Returns whether to commit; otherwise the transaction is rolled back. Default: always. */
  keeps?: (result: T) => boolean;
  /** For `begin`, `commit` and `rollback` each, milliseconds. */
  timeoutMs?: number | undefined;
  /** Statements sent with `begin`. */
  settings?: string;
}

/**
 * Runs the work in a new transaction. Throws the error of the work, after a rollback. If the rollback fails, ends the connection,
 * because PostgreSQL then rolls back, and adds the failure as the cause.
 */
export async function inTransaction<T>(
  client: ClientBase,
  work: () => Promise<T>,
  { keeps = () => true, timeoutMs, settings }: TransactionOptions<T> = {},
): Promise<T> {
  const send = async (text: string): Promise<void> => void (await client.query({ text, ...queryTimeout(timeoutMs) }));
  await send(settings === undefined ? 'begin' : `begin; ${settings}`);
  try {
    const result = await work();
    await send(keeps(result) ? 'commit' : 'rollback');
    return result;
  } catch (error) {
    if (!isDatabaseUnavailable(error))
      await send('rollback').catch((failure: unknown) => abandon(client, error, failure));
    throw error;
  }
}

/** Ends the connection, so that the pool does not lend it again. */
function abandon(client: ClientBase & { end?: () => Promise<void> }, error: unknown, failure: unknown): void {
  void client.end?.().catch(() => undefined);
  if (error instanceof Error) error.cause ??= failure;
}

/** Runs the work in a transaction on a connection of the pool. After DatabaseUnavailable, the commit may have happened. */
export async function transact<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect().catch(rethrowUnavailable);
  let broken = false;
  try {
    return await inTransaction(client, () => work(client));
  } catch (error) {
    broken = isDatabaseUnavailable(error);
    return rethrowUnavailable(error);
  } finally {
    client.release(broken);
  }
}

/** Lends out one connection of the pool for several transactions. If anything failed, the connection is not used again. */
export async function withClient<T>(pool: Pool, act: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let failed = true;
  try {
    const result = await act(client);
    failed = false;
    return result;
  } finally {
    client.release(failed);
  }
}

/** Statement timeout or cancellation, lock timeout: the statement was rolled back, and waiting longer would not help. */
const TIMED_OUT: unknown[] = ['57014', '55P03'];

/** Throws DatabaseUnavailable for an error which says that the database is unavailable or too slow, and any other error as it is. */
export function rethrowUnavailable(error: unknown): never {
  const isTimedOut = TIMED_OUT.includes((error as { code?: unknown } | null)?.code);
  throw isTimedOut || isDatabaseUnavailable(error) ? new DatabaseUnavailable(error) : error;
}
