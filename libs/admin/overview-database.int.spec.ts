import { openDatabase, namedStatement } from '#platform';
import { createTestDatabase } from '#testing';

const { text } = namedStatement(`${import.meta.dirname}/queries`, 'overview-database.sql');

test('connections of other roles count too, for a role that may not read their statistics', async () => {
  const testDatabase = await createTestDatabase();
  const database = await openDatabase({ url: testDatabase.ownerUrl, applicationName: 'test', maxConnections: 1 });
  const client = await database.pool.connect();
  try {
    const read = async () => (await client.query<{ connections: number }>(text)).rows[0]!.connections;
    // What is seen of sessions stays the same within a transaction.
    await client.query('begin');
    const all = await read();
    // One that is there in each PostgreSQL, and has no other right.
    await client.query('set local role pg_signal_backend');
    expect(all).toBeGreaterThan(0);
    expect(await read()).toBeGreaterThanOrEqual(all);
    await client.query('rollback');
  } finally {
    client.release();
    await database.close();
    await testDatabase.drop();
  }
});
