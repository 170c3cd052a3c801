import { Client } from 'pg';
import { createTestDatabase, eventually, faultProxy, type FaultProxy, type TestDatabase } from '#testing';
import { openPolicyVersions } from './policy-versions.ts';
import { PolicyWatch } from './policy-watch.ts';

// Real: PostgreSQL, and a proxy to it that breaks. The triggers are shown in libs/event-store/policy-version.int.spec.ts.

let database: TestDatabase;
let admin: Client;
let proxy: FaultProxy;
let watch: PolicyWatch;
let errors: unknown[];

beforeEach(async () => {
  database = await createTestDatabase();
  admin = new Client({ connectionString: database.url });
  await admin.connect();
  proxy = await faultProxy(Number(new URL(database.url).port || 5432));
  errors = [];
  watch = new PolicyWatch({
    versions: openPolicyVersions(proxy.through(database.url)),
    onError: (error) => errors.push(error),
  });
  watch.start();
  await trusted(true);
});

afterEach(async () => {
  proxy.resume();
  await watch.stop();
  await proxy.close();
  await admin.end();
  await database.drop();
});

const trusted = (isTrusted: boolean): Promise<unknown> =>
  eventually(() => watch.isTrusted === isTrusted, { what: `it is ${isTrusted ? '' : 'not '}trusted` });
const raise = (): Promise<unknown> => admin.query('update policy_version set version = version + 1');

it('notices a change within a second or so, and looks once a second on one connection', async () => {
  const { generation } = watch;
  const startedAt = performance.now();
  await raise();
  await eventually(() => watch.generation !== generation, { what: 'the change is noticed' });
  expect(performance.now() - startedAt).toBeLessThan(2_000);
  expect(proxy.connectionCount()).toBe(1);
});

it.each([
  ['closes connections', () => proxy.cut()],
  ['is silent', () => proxy.stall()],
])('is not trusted for long when the database %s, and notices a change when it is back', async (_, fail) => {
  const { generation } = watch;
  fail();
  const startedAt = performance.now();
  await raise();
  await trusted(false);
  expect(performance.now() - startedAt).toBeLessThan(3_000);
  expect(watch.generation).toBe(generation);
  proxy.resume();
  await trusted(true);
  expect(watch.generation).not.toBe(generation);
  expect(errors).toHaveLength(1);
});

it('stays trusted over a connection that breaks', async () => {
  const { generation } = watch;
  proxy.reset();
  await raise();
  let lapsed = false;
  const notices = (): boolean => {
    lapsed ||= !watch.isTrusted;
    return watch.generation !== generation;
  };
  await eventually(notices, { what: 'the change is noticed' });
  expect(lapsed).toBe(false);
});

it('has no version without the row: a look fails', async () => {
  await admin.query('delete from policy_version');
  const versions = openPolicyVersions(database.url);
  await expect(versions.read()).rejects.toThrow('The row of policy_version is missing.');
  await versions.close();
});
