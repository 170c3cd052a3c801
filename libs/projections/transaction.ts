import type { ClientBase, Pool, PoolClient } from 'pg';

/** `snapshot`: all reads see the same moment. `locked`: each statement sees what is committed, to read behind locks. */
export type Isolation = 'snapshot' | 'locked';

// Times as text are read as UTC, whatever the server is set to.
const BEGIN: Record<Isolation, string> = {
  snapshot: `begin isolation level repeatable read, read only; set local timezone = 'UTC'`,
  locked: `begin isolation level read committed; set local timezone = 'UTC'`,
};

export async function inTransaction<T>(client: ClientBase, isolation: Isolation, act: () => Promise<T>): Promise<T> {
  await client.query(BEGIN[isolation]);
  try {
    const result = await act();
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch(() => undefined); // with the connection gone the server does it
    throw error;
  }
}

/** Lends one connection out; one on which something failed is not used again. */
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
