import { loadConfig, openDatabase, openPolicyVersions, PolicyWatch, type Database } from '#platform';
import { createTestDatabase, eventually, type TestDatabase } from '#testing';
import { AccessStore, openSession, OperatorSessions } from './index.ts';

let testDatabase: TestDatabase;
let database: Database;
let watch: PolicyWatch;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = await openDatabase({ url: testDatabase.url, applicationName: 'test', maxConnections: 4 });
  watch = new PolicyWatch({ versions: openPolicyVersions(testDatabase.url) });
  await watch.look();
});
afterAll(async () => {
  await watch.stop();
  await database.close();
  await testDatabase.drop();
});

it('does not revive an ended session by a late write of its use', async () => {
  const { pool } = database;
  const sessions = new OperatorSessions({ pool, watch, settings: loadConfig({}), onError: () => undefined });
  const operator = await new AccessStore(pool).mintToken({ kind: 'operator', name: 'Grace' });
  const { id, pageKey } = await openSession(pool, { tokenId: operator.id, secret: operator.token });

  // The first use is read immediately, but its write waits in the process until the session has ended.
  const query = pool.query.bind(pool) as (statement: { name?: string }) => Promise<unknown>;
  let write!: () => void;
  const written = new Promise<void>((resolve) => (write = resolve));
  const asked = jest.spyOn(pool, 'query').mockImplementation((async (statement: { name?: string }) => {
    if (statement.name === 'touch-session') await written;
    return query(statement);
  }) as never);
  const given = { ids: [id], pageKey };
  expect(await sessions.find(given)).not.toBeNull();
  const isWrite = ([statement]: unknown[]) => (statement as { name?: string }).name === 'touch-session';
  await eventually(() => asked.mock.calls.some(isWrite), { what: 'the write of the use is requested' });
  const results = asked.mock.results.map(({ value }) => value as unknown);
  asked.mockRestore();
  await pool.query(`update operator_sessions set last_used_at = last_used_at - interval '1 hour'`);
  write();
  await Promise.all(results);

  sessions.forget(id);
  expect(await sessions.find(given)).toBeNull();
});
