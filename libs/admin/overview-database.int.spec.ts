import { openDatabase, namedStatement } from '#platform';
import { createTestDatabase } from '#testing';

const { text } = namedStatement(`${import.meta.dirname}/queries`, 'overview-database.sql');

test('counts connections of other roles for a role that cannot read their statistics', async () => {
  const testDatabase = await createTestDatabase();
  const database = await openDatabase({ url: testDatabase.ownerUrl, applicationName: 'test', maxConnections: 1 });
  const client = await database.pool.connect();
  try {
    const read = async () => (await client.query<{ connections: number }>(text)).rows[0]!.connections;
    // Within a transaction, pg_stat_activity is a snapshot.
    await client.query('begin');
    const all = await read();
    // A predefined role of PostgreSQL without the right to read statistics.
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
