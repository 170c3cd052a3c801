import { Client } from 'pg';
import { createTestDatabase, spawnNode, type SpawnedNode, type TestDatabase } from '#testing';
import { createAcknowledged } from './support/client.ts';
import { allRunsCompleted, expectHealthy } from './support/checks.ts';
import { startSystem } from './support/system.ts';
import { SpoolCommand } from './support/spool-command.ts';

/** An installation with two roles, from an empty database on: docs/operations/postgresql.md, as built processes do it. */
describe('an installation whose processes may not change the schema', () => {
  let database: TestDatabase;
  const started: SpawnedNode[] = [];

  beforeAll(async () => {
    database = await createTestDatabase();
    const owner = new Client({ connectionString: database.ownerUrl });
    await owner.connect();
    await owner.query('drop schema public cascade; create schema public; drop schema bullmq cascade');
    await owner.end();
  });
  afterAll(async () => {
    await Promise.all(started.map((process) => process.kill('SIGKILL')));
    await database.drop();
  });

  const env = (): Record<string, string> => ({ DATABASE_URL: database.url, PORT: '0', LOG_LEVEL: 'info' });
  const spool = (args: string[], more: Record<string, string> = {}) =>
    new SpoolCommand({ ...env(), ...more }).run(args);
  const start = (app: string): SpawnedNode => {
    const process = spawnNode(`dist/apps/${app}/main.js`, [], env());
    started.push(process);
    return process;
  };

  test.each(['api', 'worker', 'standalone'])(
    '%s stops with one line that says what to run',
    async (app) => {
      const process = start(app);
      expect(await process.exited).toEqual({ code: 1, signal: null });
      const lines = process.output().trimEnd().split('\n');
      expect(lines.at(-1)).toMatch(
        /^The database \S+ at \S+ needs \d+ migrations, which the role "spool_test_app" cannot run: run spool migrate --owner-url .+\.$/,
      );
      expect(process.output()).not.toMatch(/^ +at /m);
    },
    60_000,
  );

  test('so does spool migrate without the URL of the owner, and with one that is none', async () => {
    const { code, err } = await spool(['migrate']);
    expect([code, err]).toEqual([5, expect.stringMatching(/cannot run: run spool migrate --owner-url [^\n]+\n$/)]);
    expect(await spool(['migrate', '--owner-url', 'db.example'])).toMatchObject({ code: 2 });
    const same = await spool(['migrate', '--owner-url', database.ownerUrl], { DATABASE_URL: database.ownerUrl });
    expect([same.code, same.err]).toEqual([2, expect.stringMatching(/name another role in DATABASE_URL[^\n]+\n$/)]);
  }, 60_000);

  test('spool migrate --owner-url makes it ready, again and at once too', async () => {
    const migrate = () => spool(['migrate', '--owner-url', database.ownerUrl]);
    const all = await Promise.all([migrate(), migrate()]);
    expect(all.map(({ code, err }) => [code, err])).toEqual(Array(2).fill([0, '']));
    const granted = 'The database was up to date already. The user of DATABASE_URL has the rights of a process.\n';
    expect(await migrate()).toMatchObject({ code: 0, out: granted });
    expect(await spool(['migrate'])).toMatchObject({ code: 0, out: 'The database was up to date already.\n' });
  }, 60_000);

  test('then processes complete Runs by a queue in PostgreSQL, and what operators do on it works', async () => {
    const system = await startSystem({ testDatabase: { ...database, drop: () => Promise.resolve() } });
    try {
      const [{ caller }] = await Promise.all([system.startApi(), system.startWorker()]);
      const threadIds: string[] = [];
      for (let i = 0; i < 3; i++) threadIds.push((await createAcknowledged(caller, `/pause 0 ${i}`)).threadId);
      await allRunsCompleted(system.database, 3, 30_000);
      await expectHealthy(system.database);
      for (const args of [
        ['verify', '--local'],
        ['projections', 'rebuild', '--local'],
        ['thread', 'delete', threadIds[0]!, '--yes', '--local'],
        ['audit', '--local'],
        ['queue', 'pause', '--yes', '--local'],
        ['queue', 'resume', '--local'],
        ['token', 'create', '--operator', '--name', 'x', '--local'],
      ]) {
        expect([args, await spool(args)]).toEqual([args, expect.objectContaining({ code: 0 })]);
      }
      const { rows } = await system.database.pool.query('select from events where thread_id = $1', [threadIds[0]]);
      expect(rows).toEqual([]);
    } finally {
      await system.stop();
    }
  }, 120_000);

  test('the doctor warns of a process that is the owner, and of no other', async () => {
    const role = async (url: string) => {
      const { out } = await spool(['doctor', '--local', '--json'], { DATABASE_URL: url });
      return (JSON.parse(out) as { name: string }[]).find(({ name }) => name === 'role');
    };
    expect(await role(database.url)).toMatchObject({ status: 'ok' });
    expect(await role(database.ownerUrl)).toMatchObject({
      status: 'warning',
      message: expect.stringContaining('owns the tables') as string,
    });
  }, 60_000);
});
