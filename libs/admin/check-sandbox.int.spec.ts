import { openDatabase, type Database } from '#platform';
import { createTestDatabase, type TestDatabase } from '#testing';
import { checkSandbox } from './check-sandbox.ts';

// Real: PostgreSQL with the released schema.

let database: TestDatabase;
let open: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  open = await openDatabase({ url: database.url, applicationName: 'test', maxConnections: 1 });
});
afterAll(async () => {
  await open?.close();
  await database?.drop();
});
beforeEach(() => open.pool.query('delete from workers'));

const register = (holder: string, sandbox: object | null) =>
  open.pool.query('insert into workers (holder, slots, seen_at, sandbox) values ($1, 1, now(), $2)', [holder, sandbox]);
const check = () => checkSandbox(open.pool, { TOOL_SERVER_COMMANDS: '/usr/bin/npx' });

it('warns about workers that cannot start programs which this process allows in manifests', async () => {
  await register('a', { isolation: null, refused: null, warnings: [] });
  await register('b', null);
  expect(await check()).toEqual({
    status: 'warning',
    message:
      'Worker a: It cannot start programs; set TOOL_SERVER_COMMANDS on it too. Worker b: It runs an older release, which does not report its sandbox.',
  });
});

it('reports an unknown sandbox if no worker is alive', async () => {
  const message = 'No worker is alive, so the sandbox of tool servers is unknown.';
  expect(await check()).toEqual({ status: 'warning', message });
});
