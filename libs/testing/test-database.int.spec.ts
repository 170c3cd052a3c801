import { Client } from 'pg';
import { asAdmin, connectAdmin, createTestDatabase, dropLeftoverDatabases, lockRun } from './test-database.ts';
import { currentRun, newRunId } from './test-run.ts';

const { databaseUrl } = currentRun();

const databases = (): Promise<string[]> =>
  asAdmin(databaseUrl, async (admin) => {
    const { rows } = await admin.query<{ datname: string }>('select datname from pg_database');
    return rows.map(({ datname }) => datname);
  });

const nameIn = (url: string): string => new URL(url).pathname.slice(1);

it('is migrated, belongs to the caller alone, and goes although connections are open', async () => {
  const [one, other] = await Promise.all([createTestDatabase(), createTestDatabase()]);
  const client = new Client({ connectionString: one.url });
  client.on('error', () => undefined);
  await client.connect();
  const { rows } = await client.query<{ found: boolean }>(`select to_regclass('streams') is not null as found`);
  expect(rows).toEqual([{ found: true }]);
  expect(one.url).not.toBe(other.url);

  await Promise.all([one.drop(), other.drop()]);
  const left = await databases();
  expect(left).not.toContain(nameIn(one.url));
  expect(left).not.toContain(nameIn(other.url));
});

it('what a killed run left is dropped, what a living one uses is not', async () => {
  const [dead, alive] = [`spool_test_${newRunId()}_1`, `spool_test_${newRunId()}_1`];
  const livingRun = await connectAdmin(databaseUrl);
  await lockRun(livingRun, alive.split('_')[2]!);
  await asAdmin(databaseUrl, async (admin) => {
    await admin.query(`create database ${dead}`);
    await admin.query(`create database ${alive}`);
    await dropLeftoverDatabases(admin, 'ours');
  });
  const left = await databases();
  await livingRun.end();
  await asAdmin(databaseUrl, (admin) => admin.query(`drop database ${alive}`));
  expect(left).toContain(alive);
  expect(left).not.toContain(dead);
});
